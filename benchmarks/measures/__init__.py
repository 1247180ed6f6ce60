"""Measurements: one module per kind of figure."""
