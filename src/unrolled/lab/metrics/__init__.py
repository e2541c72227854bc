"""Metrics beyond accuracy, one a file."""
