"""Sum of an l1 and an l2 penalty."""

from __future__ import annotations

from typing import Any

from ..graphs import GraphBuilder
from .expressions import absolute_values, squares
from .l1 import L1Penalty

__all__ = ["ElasticPenalty"]


class ElasticPenalty(L1Penalty):
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
    weights : str, sequence of str or None, default=None
        Names or glob patterns of the weights to penalise; all weights by default.
    proximal : bool, default=True
        Whether the l1 term acts by its proximal step after each update, which makes weights exactly zero,
        instead of by its gradient. This holds for SGD with or without momentum. Other updates, which have a
        rate for each element, use the gradient.
    toward : {"zero", "start"}, default="zero"
        Weights at which the penalty is smallest: ``"start"`` penalises the difference from the starting
        weights, so that training on few new samples changes only the weights that need to change.

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

    strengths = ("l1", "l2")

    def __init__(
        self,
        l1: float = 0.5,
        l2: float = 0.5,
        intercept: bool = False,
        weights: Any = None,
        proximal: bool = True,
        toward: Any = "zero",
    ) -> None:
        super().__init__(l1=l1, intercept=intercept, weights=weights, proximal=proximal)
        self.l2 = l2
        self.toward = toward

    def check(self) -> None:
        """Check the parameters before training."""
        super().check()
        self.check_number("l2", closed=True)
        self.check_choice("toward", ("zero", "start"))

    @property
    def square_factor(self) -> float:
        """Factor of ``w ** 2``."""
        return float(self.l2)

    def forward(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the penalty of one weight."""
        terms = [absolute_values(op, weight, self.l1), squares(op, weight, self.l2)]
        found = [term for term in terms if term is not None]
        if len(found) < 2:
            return found[0] if found else None
        return op.Add(*found)

    def smooth_part(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the differentiable part."""
        return squares(op, weight, self.l2) if self.is_proximal() else self.forward(op, weight)
