"""Passes that return a faster training with equal results up to rounding."""
