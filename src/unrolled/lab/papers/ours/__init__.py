"""Questions of our own: one a file."""
