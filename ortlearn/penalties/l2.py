"""Penalty on squares."""

from __future__ import annotations

from typing import Any

from ..graphs import GraphBuilder
from .base import BasePenalty
from .expressions import squares

__all__ = ["L2Penalty"]


class L2Penalty(BasePenalty):
    """Ridge penalty: ``l2 * w ** 2``, summed over the weight.

    Parameters
    ----------
    l2 : float, default=0.5
        Factor; scikit-learn's ``alpha`` of an MLP is ``2 * l2``.
    intercept : bool, default=False
        Whether intercepts are penalised too.
    weights : str, sequence of str or None, default=None
        Names or glob patterns of the weights to penalise; all weights by default.
    toward : {"zero", "start"}, default="zero"
        Weights at which the penalty is smallest: ``"start"`` penalises the difference from the starting
        weights, so that training on few new samples changes only the weights that need to change.

    References
    ----------
    Hoerl, A. E. and Kennard, R. W., "Ridge regression", Technometrics 12 (1970), 55-67.

    Examples
    --------
    >>> from ortlearn.penalties import L2Penalty
    >>> L2Penalty(0.01)
    L2Penalty(l2=0.01)
    """

    strengths = ("l2",)

    def __init__(
        self, l2: float = 0.5, intercept: bool = False, weights: Any = None, toward: Any = "zero"
    ) -> None:
        super().__init__(intercept=intercept, weights=weights)
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
        return squares(op, weight, self.l2)
