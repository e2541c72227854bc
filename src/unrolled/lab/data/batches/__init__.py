"""Examples as tensors, and batches of them."""
