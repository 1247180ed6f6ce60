"""Training steps: an epoch as one call, or batches as one, two or four calls."""
