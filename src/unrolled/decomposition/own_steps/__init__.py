"""Steps that a user wrote: found in a run, one operation of it, and a cell of their own."""
