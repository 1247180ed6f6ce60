"""Absolute error."""

from __future__ import annotations

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

    kinks = True

    def forward(self, op, expected, predicted):
        """Write the loss of each sample."""
        return self.sum_outputs(op, op.Abs(op.Sub(predicted, expected)))
