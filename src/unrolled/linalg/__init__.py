"""Linear operators and sweeps over them, activations, averages along a line, and memory; independent of networks.

Operations whose derivatives torch computes wrongly are written here in others.
"""
