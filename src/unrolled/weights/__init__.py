"""Build models from files of weights."""
