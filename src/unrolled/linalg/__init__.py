"""Structured linear operators, activations, and averages along a line. Nothing here knows of networks."""
