"""Intervals, sets and calibrated probabilities of any model, in one ONNX file."""

from .classifier import OrtSetClassifier
from .regressor import OrtIntervalRegressor
from .scores import IntervalScorer, coverage_score, crps_score, interval_score, pinball_score

__all__ = [
    "IntervalScorer",
    "OrtIntervalRegressor",
    "OrtSetClassifier",
    "coverage_score",
    "crps_score",
    "interval_score",
    "pinball_score",
]
