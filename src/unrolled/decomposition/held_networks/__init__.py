"""Recurrent networks in a held run: the rules of their calls, and a layer as two linear nodes of a graph."""
