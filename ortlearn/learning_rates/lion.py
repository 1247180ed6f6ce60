"""Lion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..graphs import GraphBuilder
from .scheduled import ScheduledLearningRate

__all__ = ["LearningRateLion"]


class LearningRateLion(ScheduledLearningRate):
    """Lion: steps of equal size in all elements, with the sign of a running mean of gradients.

    With ``c = beta_1 * m + (1 - beta_1) * g``, the update is
    ``w -= rate * (sign(c) + weight_decay * w)``; then ``m = beta_2 * m + (1 - beta_2) * g``.

    Parameters
    ----------
    eta0 : float, default=0.0001
        Rate that the schedule starts with; a third to a tenth of Adam's is a good value.
    beta_1 : float, default=0.9
        Share of the mean in the direction of a step, in [0, 1).
    beta_2 : float, default=0.99
        Decay of the mean of gradients, in [0, 1).
    weight_decay : float, default=0.0
        Decay per update of all weights, intercepts too, as a share of the weight, divided by the rate.
    learning_rate : str or BaseSchedule, default="constant"
        Alias of ``schedule``, used if that is None.
    alpha : float, default=0.0001
        Strength of the penalty in the schedule ``"optimal"``.
    power_t : float, default=0.25
        Exponent of the schedule ``"invscaling"``.
    schedule : str or BaseSchedule, default=None
        Schedule, see :class:`~ortlearn.learning_rates.LearningRateSGD`.

    References
    ----------
    Chen, X. et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023, algorithm 2.

    Examples
    --------
    >>> from ortlearn.learning_rates import LearningRateLion
    >>> LearningRateLion().init(np.zeros(2))
    {'mean': array([0., 0.])}
    """

    elementwise = True

    def __init__(
        self,
        eta0: float = 0.0001,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        weight_decay: float = 0.0,
        learning_rate: Any = "constant",
        alpha: float = 0.0001,
        power_t: float = 0.25,
        schedule: Any = None,
    ) -> None:
        super().__init__(
            eta0=eta0, alpha=alpha, power_t=power_t, learning_rate=learning_rate, schedule=schedule
        )
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.weight_decay = weight_decay

    def check(self) -> None:
        """Check the parameters before training."""
        super().check()
        for name in ("beta_1", "beta_2"):
            self.check_number(name, high=1.0, closed=True)
        self.check_number("weight_decay", closed=True)

    def init(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return the initial state of one weight: a zero mean."""
        return {"mean": np.zeros_like(weight)}

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight."""
        beta_1, beta_2 = float(self.beta_1), float(self.beta_2)
        mixed = op.Add(op.Mul(state["mean"], beta_1), op.Mul(gradient, 1.0 - beta_1))
        mean = op.Add(op.Mul(state["mean"], beta_2), op.Mul(gradient, 1.0 - beta_2))
        step = op.Sign(mixed)
        if self.weight_decay:
            step = op.Add(step, op.Mul(weight, float(self.weight_decay)))
        return op.Sub(weight, op.Mul(step, rate)), {"mean": mean}
