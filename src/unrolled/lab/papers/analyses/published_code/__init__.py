"""Settings of the authors' published code of Implicit n-grams that differ from the paper's text."""
