"""Pinball loss."""

from __future__ import annotations

from .base import BaseLoss
from .expressions import positive_part

__all__ = ["QuantileLoss"]


class QuantileLoss(BaseLoss):
    """Pinball loss: ``max(q * r, (q - 1) * r)`` with ``r = y - f``, summed over outputs.

    Its minimiser is the q-quantile of y given the features.

    Parameters
    ----------
    quantile : float, default=0.5
        The level q, between 0 and 1, both excluded.

    References
    ----------
    Koenker, R. and Bassett, G., "Regression quantiles", Econometrica 46 (1978), 33-50.

    Examples
    --------
    >>> from ortlearn.losses import QuantileLoss
    >>> QuantileLoss(quantile=0.9)
    QuantileLoss(quantile=0.9)
    """

    kinks = True

    def __init__(self, quantile=0.5):
        self.quantile = quantile

    def check(self):
        """Check the parameters before training."""
        self.check_number("quantile", high=1.0)

    def forward(self, op, expected, predicted):
        """Write the loss of each sample."""
        residual = op.Sub(expected, predicted)
        # max(q r, (q - 1) r) = max(r, 0) - (1 - q) r
        rest = op.Mul(residual, 1.0 - float(self.quantile))
        return self.sum_outputs(op, op.Sub(positive_part(op, residual), rest))
