"""Learning rates: each one a plugin, a schedule and an update rule written in ONNX."""

from .adam import LearningRateAdam
from .base import BaseLearningRate, ScheduledLearningRate, resolve_learning_rate
from .sgd import LearningRateSGD
from .sgd_nesterov import LearningRateSGDNesterov

__all__ = [
    "BaseLearningRate",
    "LearningRateAdam",
    "LearningRateSGD",
    "LearningRateSGDNesterov",
    "ScheduledLearningRate",
    "resolve_learning_rate",
]
