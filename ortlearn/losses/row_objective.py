"""Losses that a model computes itself."""

from __future__ import annotations

from .base import BaseLoss

__all__ = ["RowObjective"]


class RowObjective(BaseLoss):
    """Loss that the model itself computes: ``f - y`` with labels y of zero, summed over outputs.

    Models trained without labels have an output with their own loss of each sample: minus the
    log-likelihood of a mixture, the squared distance to the nearest centre of KMeans.

    Examples
    --------
    >>> from ortlearn.losses import RowObjective
    >>> sorted(RowObjective().tasks)
    ['unsupervised']
    """

    tasks = frozenset({"unsupervised"})

    def forward(self, op, expected, predicted):
        """Write the loss of each sample."""
        return self.sum_outputs(op, op.Sub(predicted, expected))
