"""Sentences and words that experiments need, written or selected for them, and properties of texts."""
