"""Intervals, sets and calibrated probabilities of any model, in one ONNX file."""

from .regressor import OrtIntervalRegressor

__all__ = ["OrtIntervalRegressor"]
