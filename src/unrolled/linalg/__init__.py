"""Linear operators and sweeps over them, activations, averages along a line, and memory; independent of networks."""
