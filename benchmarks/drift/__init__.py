"""Adapting a model to few samples of data that drifted: warm starts against scikit-learn."""
