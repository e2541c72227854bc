"""Numbers: where the numbers of a model's arguments stand, by step, example and feature."""
