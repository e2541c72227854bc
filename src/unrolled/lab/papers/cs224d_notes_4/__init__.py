"""Mohammadi et al. (2015), CS 224D, notes part IV: one figure or claim a file."""
