"""Targets: which numbers of a model's output are explained, and what they are."""
