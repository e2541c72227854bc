"""A network as cells that share its weights, run step by step, and the check that they are the same network."""
