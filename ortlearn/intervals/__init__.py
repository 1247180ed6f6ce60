"""Intervals, sets and calibrated probabilities of any model, in one ONNX file."""

from .classifier import OrtSetClassifier
from .regressor import OrtIntervalRegressor

__all__ = ["OrtIntervalRegressor", "OrtSetClassifier"]
