"""Bound on the norms of units."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import BasePenalty
from .expressions import as_operand

__all__ = ["MaxNormPenalty"]


class MaxNormPenalty(BasePenalty):
    """Max-norm: the weights of each unit are kept within a ball, ``||w_j|| <= max_norm``.

    A unit is a column of a weight of shape (inputs, units), the first axis of a convolution, or all
    of a vector. The penalty adds nothing to the loss: after each update, columns outside are scaled back.

    Parameters
    ----------
    max_norm : float, default=3.0
        Radius of the ball.
    intercept : bool, default=False
        Whether intercepts are bounded, too.
    weights : str, sequence of str or None, default=None
        Names or glob patterns of the weights to penalise; all weights by default.

    References
    ----------
    Srebro, N., Rennie, J. and Jaakkola, T., "Maximum-margin matrix factorization", NIPS 2004; for
    units, Hinton, G. E. et al., "Improving neural networks by preventing co-adaptation of feature
    detectors", arXiv:1207.0580, 2012.

    Examples
    --------
    >>> from ortlearn.penalties import MaxNormPenalty
    >>> MaxNormPenalty().max_norm
    3.0
    """

    proximal_kind = "column_ball"
    strengths = ("max_norm",)

    def __init__(self, max_norm: float = 3.0, intercept: bool = False, weights: Any = None) -> None:
        super().__init__(intercept=intercept, weights=weights)
        self.max_norm = max_norm

    def check(self) -> None:
        """Check the parameters before training."""
        super().check()
        self.check_number("max_norm")

    @property
    def smooth(self) -> bool:
        """Whether the penalty is differentiable everywhere: a bound is not."""
        return False

    def is_proximal(self) -> bool:
        """Return whether the penalty has a proximal step."""
        return True

    @property
    def projects(self) -> bool:
        """Whether the proximal step does not depend on the learning rate."""
        return True

    def forward(self, op: Any, weight: str) -> str | None:
        """Return None, since the bound adds nothing to the loss."""
        return None

    def proximal_step(self, op: Any, weight: str, rate: str) -> str:
        """Write the proximal step, the projection onto the ball."""
        rank = len(op.shape(weight))
        axes = list(range(1, rank)) if rank > 2 else [0]
        norms = op.Sqrt(op.ReduceSum(op.Mul(weight, weight), axes, keepdims=1))
        tiny = float(np.finfo(op.float_dtype).tiny)
        return op.Mul(weight, op.Min(op.Div(as_operand(self.max_norm), op.Max(norms, tiny)), 1.0))
