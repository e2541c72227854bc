"""The main job: any model with a recurrent network in it, one logit, and where it came from."""
