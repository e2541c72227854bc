"""Models from files of weights: a state dict says which network wrote it."""
