"""Models with a recurrent network inside, ready to be opened."""
