"""N-gram terms, their sums, and the account of an output."""
