"""Further runs of a model: they show on what its output depends beside its n-grams and rows."""
