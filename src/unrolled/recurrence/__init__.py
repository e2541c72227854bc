"""What a recurrent cell is, how it runs, and the line along which it is linearised."""
