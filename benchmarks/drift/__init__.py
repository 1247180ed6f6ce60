"""Adapting a model to few rows of data that drifted: warm starts against scikit-learn."""
