"""Huber's loss."""

from __future__ import annotations

from ..graphs import GraphBuilder
from .base import BaseLoss

__all__ = ["HuberLoss"]


class HuberLoss(BaseLoss):
    """Huber's loss: ``r ** 2 / 2`` up to ``|r| = delta``, ``delta * (|r| - delta / 2)`` beyond.

    r is ``f - y``, and the loss is summed over outputs. Outliers weigh less than in the squared
    error.

    Parameters
    ----------
    delta : float, default=1.0
        Threshold between the square and the absolute value, in units of y.

    References
    ----------
    Huber, P. J., "Robust estimation of a location parameter", Annals of Mathematical Statistics 35
    (1964), 73-101.

    Examples
    --------
    >>> from ortlearn.losses import HuberLoss
    >>> HuberLoss(delta=1.5)
    HuberLoss(delta=1.5)
    """

    by_output = True

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_number("delta")

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        delta = float(self.delta)
        residual = op.Sub(predicted, expected)
        within = op.Clip(residual, -delta, delta)  # also the gradient
        return self.sum_outputs(op, op.Mul(within, op.Sub(residual, op.Mul(within, 0.5))))
