"""Schedules: the learning rate as a function of the epoch number, counted from 0."""

from __future__ import annotations

import math

__all__ = ["SCHEDULES", "constant", "invscaling", "optimal"]


def constant(epoch: int, eta0: float, alpha: float, power_t: float) -> float:
    """Return ``eta0``."""
    return eta0


def invscaling(epoch: int, eta0: float, alpha: float, power_t: float) -> float:
    """Return ``eta0 / (epoch + 1) ** power_t``."""
    return eta0 / (epoch + 1) ** power_t


def optimal(epoch: int, eta0: float, alpha: float, power_t: float) -> float:
    """Return ``1 / (alpha * (t0 + epoch))``; ``eta0`` has no effect.

    t0 makes the first rate ``sqrt(1 / sqrt(alpha))``, the typical size of a weight under an l2
    penalty of strength alpha (Bottou, L., "Stochastic gradient descent tricks", in "Neural
    networks: tricks of the trade", Springer, 2012, section 5.2, with a loss whose slope is at
    most 1).
    """
    first = math.sqrt(1.0 / math.sqrt(alpha))
    return 1.0 / (alpha * (1.0 / (first * alpha) + epoch))


#: Schedules by name.
SCHEDULES = {"constant": constant, "invscaling": invscaling, "optimal": optimal}
