"""The account of a whole model, by one forward and one backward pass, and the check of what of it opens."""
