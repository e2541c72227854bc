"""How faithful attributions are: measures, their scores over networks and texts, and tables."""
