"""Fuzzing of everything that reads files, and of gradients: ``make fuzz``."""
