"""Sum of an l1 and an l2 penalty."""

from __future__ import annotations

from .base import BasePenalty

__all__ = ["ElasticPenalty"]


class ElasticPenalty(BasePenalty):
    """Elastic penalty: ``l1 * |w| + l2 * w ** 2``, summed over the weight.

    The l2 term has no factor 1/2: scikit-learn's ``alpha`` of an MLP is ``2 * l2``.

    Parameters
    ----------
    l1 : float, default=0.5
        Factor of the absolute values.
    l2 : float, default=0.5
        Factor of the squares.
    intercept : bool, default=False
        Whether intercepts are penalised too.

    References
    ----------
    Zou, H. and Hastie, T., "Regularization and variable selection via the elastic net", Journal of
    the Royal Statistical Society B 67 (2005), 301-320.

    Examples
    --------
    >>> from ortlearn.penalties import ElasticPenalty
    >>> ElasticPenalty(l1=0.0, l2=0.1)
    ElasticPenalty(l1=0.0, l2=0.1)
    """

    def __init__(self, l1=0.5, l2=0.5, intercept=False):
        super().__init__(intercept=intercept)
        self.l1 = l1
        self.l2 = l2

    @property
    def smooth(self):
        """Whether it has a gradient everywhere."""
        return not self.l1

    def forward(self, op, weight):
        """Write the penalty of one weight."""
        terms = []
        if self.l1:
            terms.append(op.Mul(op.ReduceSum(op.Abs(weight), keepdims=0), float(self.l1)))
        if self.l2:
            terms.append(op.Mul(op.ReduceSum(op.Mul(weight, weight), keepdims=0), float(self.l2)))
        if not terms:
            return None
        return terms[0] if len(terms) == 1 else op.Add(*terms)
