"""Absolute error."""

from __future__ import annotations

from ..graphs import GraphBuilder
from .base import BaseLoss

__all__ = ["AbsoluteErrorLoss"]


class AbsoluteErrorLoss(BaseLoss):
    """Absolute error: ``|f - y|``, summed over outputs. It leads to the median.

    Examples
    --------
    >>> from ortlearn.losses import AbsoluteErrorLoss
    >>> AbsoluteErrorLoss()
    AbsoluteErrorLoss()
    """

    by_output = True

    kinks = True
    of_quantiles = True

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        return self.sum_outputs(op, op.Abs(op.Sub(predicted, expected)))
