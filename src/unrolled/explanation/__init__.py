"""Explain one logit of any model that contains a recurrent network."""
