"""Whole-sequence kernels: one a family of cells, each beside the plain steps that judge it."""
