"""Training classifiers, and the folders that keep them."""
