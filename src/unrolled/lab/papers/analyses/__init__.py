"""Analyses of trained networks that the experiments share."""
