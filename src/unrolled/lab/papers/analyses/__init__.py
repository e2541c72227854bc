"""What experiments measure: one analysis a file."""
