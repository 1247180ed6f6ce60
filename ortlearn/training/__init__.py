"""Training: the tasks of the training loop, forward and backward passes, and devices."""

from ..runtime.devices import parse_device
from .graphs.task import Objective, ScoreGraph, TrainingTask, Update
from .steps.forward_backward import OrtGradientForwardBackward
from .steps.forward_backward_function import OrtGradientForwardBackwardFunction

__all__ = [
    "Objective",
    "OrtGradientForwardBackward",
    "OrtGradientForwardBackwardFunction",
    "ScoreGraph",
    "TrainingTask",
    "Update",
    "parse_device",
]
