"""Training for any task, and the run folders that hold its results."""
