"""Epsilon-insensitive losses."""

from __future__ import annotations

from typing import Any

from ..graphs import GraphBuilder
from .base import BaseLoss
from .expressions import positive_part, squared_part

__all__ = ["EpsilonInsensitiveLoss", "SquaredEpsilonInsensitiveLoss"]


class EpsilonInsensitiveLoss(BaseLoss):
    """Epsilon-insensitive loss: ``max(0, |f - y| - epsilon)``, summed over outputs.

    Parameters
    ----------
    epsilon : float, default=0.1
        Distance up to which errors are not penalised, in units of y.

    References
    ----------
    Vapnik, V., "The nature of statistical learning theory", Springer, 1995, section 6.1.

    Examples
    --------
    >>> from ortlearn.losses import EpsilonInsensitiveLoss
    >>> EpsilonInsensitiveLoss(epsilon=0.5)
    EpsilonInsensitiveLoss(epsilon=0.5)
    """

    by_output = True

    kinks = True

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = epsilon

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_number("epsilon", closed=True)

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        return self.sum_outputs(op, positive_part(op, self._beyond(op, expected, predicted)))

    def _beyond(self, op: GraphBuilder, expected: str, predicted: str) -> Any:
        """Write ``|f - y| - epsilon``."""
        return op.Sub(op.Abs(op.Sub(predicted, expected)), float(self.epsilon))


class SquaredEpsilonInsensitiveLoss(EpsilonInsensitiveLoss):
    """Squared epsilon-insensitive loss: ``max(0, |f - y| - epsilon) ** 2``, summed over outputs.

    Parameters
    ----------
    epsilon : float, default=0.1
        Distance up to which errors are not penalised, in units of y.

    References
    ----------
    Vapnik, V., "The nature of statistical learning theory", Springer, 1995, section 6.1.

    Examples
    --------
    >>> from ortlearn.losses import SquaredEpsilonInsensitiveLoss
    >>> SquaredEpsilonInsensitiveLoss()
    SquaredEpsilonInsensitiveLoss()
    """

    kinks = False

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        return self.sum_outputs(op, squared_part(op, self._beyond(op, expected, predicted)))
