"""Which files the datasets consist of, whether they are complete and correct, and how to download them."""
