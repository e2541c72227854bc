"""Strands: the recurrent calls of one run, and how they hang together."""
