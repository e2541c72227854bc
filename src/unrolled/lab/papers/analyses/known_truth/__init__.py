"""Tasks and networks whose deciding words are known."""
