"""What each n-gram contributed to an output: scores and contributions of all n-grams, and their sum."""
