"""Decide by losses of samples whether a training improved a model."""
