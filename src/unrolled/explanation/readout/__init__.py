"""Readouts: how an output reads the states of one recurrent network."""
