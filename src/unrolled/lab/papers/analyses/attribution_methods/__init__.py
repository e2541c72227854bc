"""Methods of attribution, ours and those that they are compared with: scores of words, of pairs and of phrases."""
