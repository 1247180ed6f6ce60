"""Resolve a number, a name, a class or an object to a learning rate."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from .. import plugins
from ..exceptions import UnknownPluginError
from .base import BaseLearningRate

__all__ = ["resolve_learning_rate"]


def _as_float(number: Real) -> float:
    try:
        return float(number)
    except OverflowError:  # of an integer
        return math.inf


def resolve_learning_rate(spec: Any) -> BaseLearningRate:
    """Return a new learning rate from a number (``eta0`` of SGD), a name, a class or an object."""
    if isinstance(spec, Real) and not isinstance(spec, bool):
        rate = plugins.create(plugins.LEARNING_RATES, "SGD", BaseLearningRate, eta0=_as_float(spec))
    else:
        try:
            rate = plugins.create(plugins.LEARNING_RATES, spec, BaseLearningRate)
        except UnknownPluginError as error:
            if spec.casefold() in {info.name.casefold() for info in plugins.list_plugins(plugins.SCHEDULES)}:
                raise UnknownPluginError(
                    f"{spec!r} is a schedule, not a learning rate. Pass a learning rate with this schedule, "
                    f"such as LearningRateSGD(schedule={spec!r}) of ortlearn.learning_rates."
                ) from error
            raise
    rate.check()
    return rate
