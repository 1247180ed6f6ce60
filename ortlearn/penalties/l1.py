"""Penalty on absolute values."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from ..graphs import GraphBuilder
from .base import BasePenalty
from .expressions import absolute_values, as_operand, soft_threshold

__all__ = ["L1Penalty"]


class L1Penalty(BasePenalty):
    """Lasso penalty: ``l1 * |w|``, summed over the weight.

    Parameters
    ----------
    l1 : float, default=0.5
        Factor.
    intercept : bool, default=False
        Whether intercepts are penalised too.
    weights : str, sequence of str or None, default=None
        Names or glob patterns of the weights to penalise; all weights by default.
    proximal : bool, default=True
        Whether it acts by its proximal step after each update, ``sign(w) * max(|w| - rate * l1, 0)``, which
        makes weights exactly zero, instead of by its gradient. This holds for SGD with or without momentum.
        Other updates, which have a rate for each element, use the gradient.

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

    proximal_kind = "threshold"
    strengths: ClassVar[tuple[str, ...]] = ("l1",)

    def __init__(
        self, l1: float = 0.5, intercept: bool = False, weights: Any = None, proximal: bool = True
    ) -> None:
        super().__init__(intercept=intercept, weights=weights)
        self.l1 = l1
        self.proximal = proximal

    def check(self) -> None:
        """Check the parameters before training."""
        super().check()
        self.check_number("l1", closed=True)
        self.check_flag("proximal")

    @property
    def smooth(self) -> bool:
        """Whether the penalty is differentiable everywhere."""
        return not self.l1

    def is_proximal(self) -> bool:
        """Return whether the penalty has a proximal step."""
        return bool(self.proximal and self.l1)

    @property
    def absolute_factor(self) -> float:
        """Factor of ``|w|``."""
        return float(self.l1)

    def without_absolute_values(self) -> BasePenalty:
        """Return the penalty without its absolute values."""
        return copy.deepcopy(self).set_params(l1=0.0)

    def forward(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the penalty of one weight."""
        return absolute_values(op, weight, self.l1)

    def smooth_part(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the differentiable part."""
        return None if self.is_proximal() else self.forward(op, weight)

    def proximal_step(self, op: GraphBuilder, weight: str, rate: str) -> str:
        """Write the proximal step, which follows the update of a weight."""
        return soft_threshold(op, weight, op.Mul(rate, as_operand(self.l1)))
