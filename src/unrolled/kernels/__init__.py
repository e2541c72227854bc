"""Fast training kernels: whole-sequence versions of cells, each next to the reference steps that the tests compare."""
