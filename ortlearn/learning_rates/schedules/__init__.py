"""Schedules: plugins that return the rate of an epoch."""

from .adaptive import AdaptiveSchedule
from .base import BaseSchedule
from .constant import ConstantSchedule
from .cosine import CosineSchedule
from .exponential import ExponentialSchedule
from .invscaling import InvScalingSchedule
from .one_cycle import OneCycleSchedule
from .optimal import OptimalSchedule
from .plateau import PlateauSchedule
from .resolve import resolve_schedule
from .step import StepSchedule
from .warmup import WarmUpSchedule

__all__ = [
    "AdaptiveSchedule",
    "BaseSchedule",
    "ConstantSchedule",
    "CosineSchedule",
    "ExponentialSchedule",
    "InvScalingSchedule",
    "OneCycleSchedule",
    "OptimalSchedule",
    "PlateauSchedule",
    "StepSchedule",
    "WarmUpSchedule",
    "resolve_schedule",
]
