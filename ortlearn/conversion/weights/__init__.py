"""Which initializers are weights: their names, what they are learned from, and what is trained."""
