"""Sun and Lu (2020), Sequence-Level Features: one table or figure a file."""
