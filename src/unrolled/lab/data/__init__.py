"""Corpora: datasets by name, the user's own files, vocabularies, and batches of tensors."""
