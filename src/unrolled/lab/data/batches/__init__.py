"""Examples as tensors, and the batches that a model is trained and evaluated on."""
