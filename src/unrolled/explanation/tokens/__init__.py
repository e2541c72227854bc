"""Tokens: which token each position of a network reads, and its name."""
