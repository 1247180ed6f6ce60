"""Squared error."""

from __future__ import annotations

from ..graphs import GraphBuilder
from .base import BaseLoss

__all__ = ["SquaredErrorLoss"]


class SquaredErrorLoss(BaseLoss):
    """Squared error: ``factor * (f - y) ** 2``, summed over outputs.

    Parameters
    ----------
    factor : float, default=0.5
        Factor of the square; 1/2 by default, as in scikit-learn's models trained by gradient, so that a
        learning rate has the same effect.

    Examples
    --------
    >>> from ortlearn.losses import SquaredErrorLoss
    >>> SquaredErrorLoss().factor
    0.5
    """

    by_output = True

    definition_params = {"factor": 1.0}

    def __init__(self, factor: float = 0.5) -> None:
        self.factor = factor

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        difference = op.Sub(predicted, expected)
        total = self.sum_outputs(op, op.Mul(difference, difference))
        return total if self.factor == 1 else op.Mul(total, float(self.factor))
