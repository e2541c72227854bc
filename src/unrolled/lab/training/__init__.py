"""Training any task, and the folders that keep what came of it."""
