"""Runs of a model that is not ours: two of them agree, and the model is given back as it was."""
