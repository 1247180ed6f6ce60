"""Learning rates: plugins with a schedule and an update rule in ONNX, or solvers."""

from .adadelta import LearningRateAdadelta
from .adagrad import LearningRateAdagrad
from .adam import LearningRateAdam
from .adamw import LearningRateAdamW
from .base import BaseLearningRate
from .lbfgs import LearningRateLBFGS
from .lion import LearningRateLion
from .rates import Rates
from .resolve import resolve_learning_rate
from .rmsprop import LearningRateRMSprop
from .scheduled import ScheduledLearningRate
from .schedules import (
    AdaptiveSchedule,
    BaseSchedule,
    ConstantSchedule,
    CosineSchedule,
    ExponentialSchedule,
    InvScalingSchedule,
    OneCycleSchedule,
    OptimalSchedule,
    PlateauSchedule,
    StepSchedule,
    WarmUpSchedule,
    resolve_schedule,
)
from .sgd import LearningRateSGD
from .sgd_nesterov import LearningRateSGDNesterov
from .solver import BaseSolver, Solution

__all__ = [
    "AdaptiveSchedule",
    "BaseLearningRate",
    "BaseSchedule",
    "BaseSolver",
    "ConstantSchedule",
    "CosineSchedule",
    "ExponentialSchedule",
    "InvScalingSchedule",
    "LearningRateAdadelta",
    "LearningRateAdagrad",
    "LearningRateAdam",
    "LearningRateAdamW",
    "LearningRateLBFGS",
    "LearningRateLion",
    "LearningRateRMSprop",
    "LearningRateSGD",
    "LearningRateSGDNesterov",
    "OneCycleSchedule",
    "OptimalSchedule",
    "PlateauSchedule",
    "Rates",
    "ScheduledLearningRate",
    "Solution",
    "StepSchedule",
    "WarmUpSchedule",
    "resolve_learning_rate",
    "resolve_schedule",
]
