"""Penalty on squares."""

from __future__ import annotations

from .base import BasePenalty
from .elastic import ElasticPenalty

__all__ = ["L2Penalty"]


class L2Penalty(BasePenalty):
    """Ridge penalty: ``l2 * w ** 2``, summed over the weight.

    Parameters
    ----------
    l2 : float, default=0.5
        Factor; scikit-learn's ``alpha`` of an MLP is ``2 * l2``.
    intercept : bool, default=False
        Whether intercepts are penalised too.

    References
    ----------
    Hoerl, A. E. and Kennard, R. W., "Ridge regression", Technometrics 12 (1970), 55-67.

    Examples
    --------
    >>> from ortlearn.penalties import L2Penalty
    >>> L2Penalty(0.01)
    L2Penalty(l2=0.01)
    """

    def __init__(self, l2=0.5, intercept=False):
        super().__init__(intercept=intercept)
        self.l2 = l2

    def forward(self, op, weight):
        """Write the penalty of one weight."""
        return ElasticPenalty(l1=0.0, l2=self.l2).forward(op, weight)
