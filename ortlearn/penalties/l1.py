"""Penalty on absolute values."""

from __future__ import annotations

from .base import BasePenalty
from .elastic import ElasticPenalty

__all__ = ["L1Penalty"]


class L1Penalty(BasePenalty):
    """Lasso penalty: ``l1 * |w|``, summed over the weight.

    Parameters
    ----------
    l1 : float, default=0.5
        Factor.
    intercept : bool, default=False
        Whether intercepts are penalised too.

    References
    ----------
    Tibshirani, R., "Regression shrinkage and selection via the lasso", Journal of the Royal
    Statistical Society B 58 (1996), 267-288.

    Examples
    --------
    >>> from ortlearn.penalties import L1Penalty
    >>> L1Penalty(0.01)
    L1Penalty(l1=0.01)
    """

    def __init__(self, l1=0.5, intercept=False):
        super().__init__(intercept=intercept)
        self.l1 = l1

    @property
    def smooth(self):
        """Whether it has a gradient everywhere."""
        return not self.l1

    def forward(self, op, weight):
        """Write the penalty of one weight."""
        return ElasticPenalty(l1=self.l1, l2=0.0).forward(op, weight)
