"""Words before they are numbers: tokens, vocabulary, examples, batches, and the files they come from."""
