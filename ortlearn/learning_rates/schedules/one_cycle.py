"""One cycle: the rate rises to its maximum, then falls far below its start."""

from __future__ import annotations

import math
from typing import Any

from .base import BaseSchedule

__all__ = ["OneCycleSchedule"]


class OneCycleSchedule(BaseSchedule):
    """One cycle: from a low rate up to ``eta0``, then down to a much lower one, along two half cosines.

    With ``top = peak * epochs - 1`` and ``last = epochs - 1``, the share of ``eta0`` goes from ``first`` in
    epoch 0 to 1 in epoch ``top`` and to ``final`` in epoch ``last``; after a share p of the epochs from s to
    t it is ``t + (s - t) * (1 + cos(pi * p)) / 2``. After the cycle the rate is constant.

    Parameters
    ----------
    epochs : int, default=None
        Epochs of the cycle, 2 or more; all epochs of the training by default.
    peak : float, default=0.3
        Position of the highest rate, as a share of the cycle, in (0, 1).
    first : float, default=0.04
        First rate, as a share of ``eta0``, in (0, 1).
    final : float, default=4e-6
        Last rate, as a share of ``eta0``, in (0, 1).

    References
    ----------
    Smith, L. N. and Topin, N., "Super-convergence: very fast training of neural networks using
    large learning rates", 2019, section 3; the shape is that of ``OneCycleLR`` of torch.optim with a
    step for each epoch, ``first = 1 / div_factor`` and ``final = first / final_div_factor``.

    Examples
    --------
    >>> from ortlearn.learning_rates import OneCycleSchedule
    >>> schedule = OneCycleSchedule(epochs=10, peak=0.5)
    >>> [round(schedule.rate(epoch, eta0=1.0), 2) for epoch in (0, 2, 4, 7, 9)]
    [0.04, 0.52, 1.0, 0.35, 0.0]
    """

    spans = {"epochs": 1.0}

    def __init__(
        self, epochs: Any = None, peak: float = 0.3, first: float = 0.04, final: float = 4e-6
    ) -> None:
        self.epochs = epochs
        self.peak = peak
        self.first = first
        self.final = final

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_length("epochs", low=2)
        for name in ("peak", "first", "final"):
            self.check_number(name, high=1.0)

    def for_epochs(self, n_epochs: int) -> Any:
        """Return the schedule for a training with a given number of epochs."""
        return super().for_epochs(max(n_epochs, 2))

    def rate(self, epoch: int, eta0: float, memory: Any = None) -> float:
        """Return the rate of an epoch."""
        # A cycle that is too short to rise starts at the highest rate.
        epochs = self.length("epochs")
        top, last = max(self.peak * epochs - 1.0, 0.0), epochs - 1.0
        if epoch < top:
            return eta0 * _between(self.first, 1.0, epoch / top)
        passed = (epoch - top) / (last - top) if last > top else 1.0
        return eta0 * _between(1.0, self.final, min(passed, 1.0))


def _between(first: float, last: float, share: float) -> float:
    """Return the value of a half cosine from first to last."""
    return last + (first - last) * (1.0 + math.cos(math.pi * share)) / 2.0
