"""Sun and Lu (2022), Implicit n-grams Induced by Recurrence: one table or figure a file."""
