"""Models that are not ours: all their modules, attributes that are replaced for a run, and what one thread does."""
