"""Losses that a model gives itself."""

from __future__ import annotations

from .base import BaseLoss

__all__ = ["RowObjective"]


class RowObjective(BaseLoss):
    """What the model itself minimises, above a reference that is zero: ``f - y``, summed over outputs.

    Models trained without labels have an output with their own loss of each row: minus the
    log-likelihood of a mixture, the squared distance to the nearest centre of KMeans.

    Examples
    --------
    >>> from ortlearn.losses import RowObjective
    >>> sorted(RowObjective().tasks)
    ['unsupervised']
    """

    tasks = frozenset({"unsupervised"})

    def forward(self, op, expected, predicted):
        """Write the loss of each row."""
        return self.sum_outputs(op, op.Sub(predicted, expected))
