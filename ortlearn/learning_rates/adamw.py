"""Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..graphs import GraphBuilder
from .adam import LearningRateAdam

__all__ = ["LearningRateAdamW"]


class LearningRateAdamW(LearningRateAdam):
    """AdamW: Adam with decoupled weight decay, which applies to intercepts, too.

    ``w = (1 - rate * weight_decay) * w``, then the update of
    :class:`~ortlearn.learning_rates.LearningRateAdam`; the decay is not scaled by the running mean of
    squares, as that of an l2 penalty is.

    Parameters
    ----------
    eta0 : float, default=0.001
        Rate that the schedule starts with.
    beta_1 : float, default=0.9
        Decay of the mean of gradients, in [0, 1).
    beta_2 : float, default=0.999
        Decay of the mean of squares, in [0, 1).
    epsilon : float, default=1e-8
        Added to the denominator.
    weight_decay : float, default=0.01
        Decay per update, as a share of the weight, divided by the rate.
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
    Loshchilov, I. and Hutter, F., "Decoupled weight decay regularization", ICLR 2019, algorithm 2, with
    the weight decay multiplied by the whole rate as in torch.optim.

    Examples
    --------
    >>> from ortlearn.learning_rates import LearningRateAdamW
    >>> LearningRateAdamW(weight_decay=0.1).rate(0)
    0.001
    """

    def __init__(
        self,
        eta0: float = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        learning_rate: Any = "constant",
        alpha: float = 0.0001,
        power_t: float = 0.25,
        schedule: Any = None,
    ) -> None:
        super().__init__(
            eta0=eta0,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            learning_rate=learning_rate,
            schedule=schedule,
            alpha=alpha,
            power_t=power_t,
        )
        self.weight_decay = weight_decay

    def check(self) -> None:
        """Check the parameters before training."""
        super().check()
        self.check_number("weight_decay", closed=True)

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight."""
        kept = op.Sub(1.0, op.Mul(rate, float(self.weight_decay)))
        return super().update(op, op.Mul(weight, kept), gradient, state, rate)
