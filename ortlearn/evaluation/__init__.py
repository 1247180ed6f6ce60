"""Evaluate the model of a file, or a fitted one, on the samples of a table."""
