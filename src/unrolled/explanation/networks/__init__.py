"""Networks: the recurrent modules of a model, and the steps that users wrote themselves."""
