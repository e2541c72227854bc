"""Experiments: what they are, how their trials are kept, and how our figures stand beside the published ones."""
