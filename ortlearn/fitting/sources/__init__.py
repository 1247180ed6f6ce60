"""Samples of a source: checked, counted, and read for the training."""
