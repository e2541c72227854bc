"""The operations of a run: the mode that meets them, their names, their operands, and what they hide."""
