"""Further runs of a model: what its output depends on, and neither n-grams nor rows show."""
