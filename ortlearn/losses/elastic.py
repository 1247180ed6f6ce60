"""Mixture of absolute and squared error."""

from __future__ import annotations

from ..graphs import GraphBuilder
from .base import BaseLoss

__all__ = ["ElasticLoss"]


class ElasticLoss(BaseLoss):
    """Elastic loss: ``l1_weight * |f - y| + l2_weight * (f - y) ** 2``, summed over outputs.

    Parameters
    ----------
    l1_weight : float, default=0.5
        Weight of the absolute error.
    l2_weight : float, default=0.5
        Weight of the squared error.

    Examples
    --------
    >>> from ortlearn.losses import ElasticLoss
    >>> ElasticLoss(l1_weight=0.1)
    ElasticLoss(l1_weight=0.1)
    """

    by_output = True

    kinks = True

    def __init__(self, l1_weight: float = 0.5, l2_weight: float = 0.5) -> None:
        self.l1_weight = l1_weight
        self.l2_weight = l2_weight

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        difference = op.Sub(predicted, expected)
        absolute = op.Mul(op.Abs(difference), float(self.l1_weight))
        squared = op.Mul(op.Mul(difference, difference), float(self.l2_weight))
        return self.sum_outputs(op, op.Add(absolute, squared))
