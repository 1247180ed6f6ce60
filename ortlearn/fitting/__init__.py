"""From samples to a fitted model: the start, the training, and its state."""
