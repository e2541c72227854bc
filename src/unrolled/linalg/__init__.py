"""Structured linear operators, activations, and averages along a line; independent of networks."""
