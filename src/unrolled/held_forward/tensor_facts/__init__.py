"""What a run knows of its tensors: which are sources of value, gates, logarithms, biases or numbers."""
