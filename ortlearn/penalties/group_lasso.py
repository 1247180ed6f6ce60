"""Penalty on the norms of groups of weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .base import BasePenalty

__all__ = ["GroupLassoPenalty"]


class GroupLassoPenalty(BasePenalty):
    """Group lasso: ``strength * sqrt(p) * ||w_g||``, summed over groups g of p weights each.

    A group is a row of a weight: all coefficients of one feature, or of one unit of the previous layer. With
    SGD, with or without momentum, the proximal step sets whole rows to exactly zero, which selects features.
    A solver smooths the norms instead, so that rows become small; other updates do not support this penalty.

    Parameters
    ----------
    strength : float, default=0.01
        Factor.
    intercept : bool, default=False
        Whether intercepts are penalised too.
    weights : str, sequence of str or None, default=None
        Names or glob patterns of the weights to penalise; all weights by default.

    References
    ----------
    Yuan, M. and Lin, Y., "Model selection and estimation in regression with grouped variables",
    Journal of the Royal Statistical Society B 68 (2006), 49-67.

    Examples
    --------
    >>> from ortlearn.penalties import GroupLassoPenalty
    >>> GroupLassoPenalty(strength=0.1, weights="coef*")
    GroupLassoPenalty(strength=0.1, weights='coef*')
    """

    proximal_kind = "row_threshold"
    strengths = ("strength",)
    roundable = True

    def __init__(self, strength: float = 0.01, intercept: bool = False, weights: Any = None) -> None:
        super().__init__(intercept=intercept, weights=weights)
        self.strength = strength

    def check(self) -> None:
        """Check the parameters before training."""
        super().check()
        self.check_number("strength", closed=True)

    @property
    def smooth(self) -> bool:
        """Whether the penalty is differentiable everywhere."""
        return not self.strength

    def is_proximal(self) -> bool:
        """Return whether the penalty has a proximal step."""
        return bool(self.strength)

    def forward(self, op: Any, weight: str) -> str | None:
        """Write the penalty of one weight."""
        if not self.strength:
            return None
        norms = self._norms(op, weight)
        return op.Mul(op.ReduceSum(norms, keepdims=0), self._factor(op, weight))

    @property
    def needs_step(self) -> bool:
        """Whether the proximal step is required, since the gradient is undefined at zero."""
        return self.is_proximal()

    def smooth_part(self, op: Any, weight: str) -> str | None:
        """Return None, since the proximal step covers the whole penalty."""
        return None

    def proximal_step(self, op: Any, weight: str, rate: str) -> str:
        """Write the proximal step, a soft threshold of the norms."""
        tiny = float(np.finfo(op.float_dtype).tiny)
        ratio = op.Div(op.Mul(rate, self._factor(op, weight)), op.Max(self._norms(op, weight), tiny))
        return op.Mul(weight, op.Max(op.Sub(1.0, ratio), 0.0))

    def norm_factor(self, shape: tuple[int, ...]) -> float:
        """Return the factor of the norms of rows of a weight."""
        return float(self.strength) * math.sqrt(math.prod(shape[1:]))

    def _factor(self, op: Any, weight: str) -> Any:
        """Return the factor of the norms of a weight."""
        if isinstance(self.strength, str):
            return op.Mul(self.strength, math.sqrt(math.prod(op.shape(weight)[1:])))
        return self.norm_factor(op.shape(weight))

    @staticmethod
    def _norms(op: Any, weight: str) -> Any:
        """Write the norm of each row."""
        axes = list(range(1, len(op.shape(weight))))
        squared = op.Mul(weight, weight)
        return op.Sqrt(op.ReduceSum(squared, axes, keepdims=1) if axes else squared)
