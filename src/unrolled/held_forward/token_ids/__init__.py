"""Token ids in a run: which token each is, what is computed of them, and the vectors that they pick."""
