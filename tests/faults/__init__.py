"""Faults: what is killed, refused, altered or run at once, and what is left of a training after it."""
