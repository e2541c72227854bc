"""Saparov, CS 577, lecture 5: one figure or claim a file."""
