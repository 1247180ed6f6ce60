"""Squared error."""

from __future__ import annotations

from .base import BaseLoss

__all__ = ["SquaredErrorLoss"]


class SquaredErrorLoss(BaseLoss):
    """Squared error: ``factor * (f - y) ** 2``, summed over outputs.

    Parameters
    ----------
    factor : float, default=0.5
        Half the square by default, as scikit-learn's gradient-trained models minimise it, so that
        a learning rate means the same in both.

    Examples
    --------
    >>> from ortlearn.losses import SquaredErrorLoss
    >>> SquaredErrorLoss().factor
    0.5
    """

    definition_params = {"factor": 1.0}

    def __init__(self, factor=0.5):
        self.factor = factor

    def forward(self, op, expected, predicted):
        """Write the loss of each row."""
        difference = op.Sub(predicted, expected)
        total = self.sum_outputs(op, op.Mul(difference, difference))
        return total if self.factor == 1 else op.Mul(total, float(self.factor))
