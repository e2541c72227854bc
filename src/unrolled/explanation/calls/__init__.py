"""Explanations made of all calls of a model's recurrent networks."""
