"""Pinball loss of one quantile, and of several that cannot cross."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import PluginError
from ..graphs import GraphBuilder
from .base import BaseLoss
from .expressions import positive_part, softplus

__all__ = ["QuantileLoss", "QuantilesLoss", "quantiles_of_scores"]


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

    by_output = True

    kinks = True
    of_quantiles = True

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = quantile

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_number("quantile", high=1.0)

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        residual = op.Sub(expected, predicted)
        # max(q r, (q - 1) r) = max(r, 0) - (1 - q) r
        rest = op.Mul(residual, 1.0 - float(self.quantile))
        return self.sum_outputs(op, op.Sub(positive_part(op, residual), rest))


class QuantilesLoss(BaseLoss):
    """Sum of the pinball losses of several quantiles, which the scores give as increments.

    A model has one score per level. The score of the level next to 0.5 is that quantile; each further one
    is ``softplus(score)`` above or below its neighbour, so quantiles never cross. Labels repeat y once per
    level: ``numpy.tile(y.reshape(-1, 1), (1, len(levels)))``. Predictions are the scores;
    :class:`ortlearn.OrtIntervalRegressor` trains with this loss and predicts the quantiles.

    Parameters
    ----------
    levels : sequence of float, default=(0.05, 0.5, 0.95)
        Levels of the quantiles, rising numbers between 0 and 1, both excluded.

    References
    ----------
    Koenker, R. and Bassett, G., "Regression quantiles", Econometrica 46 (1978), 33-50.

    Examples
    --------
    >>> from ortlearn.losses import QuantilesLoss
    >>> QuantilesLoss(levels=(0.1, 0.9))
    QuantilesLoss(levels=(0.1, 0.9))
    """

    kinks = True
    of_quantiles = True

    def __init__(self, levels: Any = (0.05, 0.5, 0.95)) -> None:
        self.levels = levels

    def check(self) -> None:
        """Check the parameters before training."""
        try:
            levels = np.asarray(self.levels, dtype=np.float64)
        except (TypeError, ValueError):
            levels = np.zeros(0)
        inside = levels.ndim == 1 and levels.size and np.all((levels > 0) & (levels < 1))
        if not inside or np.any(np.diff(levels) <= 0):
            raise PluginError(
                f"QuantilesLoss: levels={self.levels!r} must be rising numbers between 0 and 1, each once."
            )

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample; labels have a column per level."""
        known = op.shape(predicted)
        if known is not None and len(known) == 2 and known[1] not in (None, len(self.levels)):
            raise PluginError(
                f"QuantilesLoss: {len(self.levels)} levels take {len(self.levels)} scores, not {known[1]}: "
                "repeat the labels once per level."
            )
        residual = op.Sub(expected, quantiles_of_scores(op, predicted, self.levels))
        # max(q r, (q - 1) r) = max(r, 0) - (1 - q) r
        rest = op.Mul(residual, [1.0 - float(level) for level in self.levels])
        return self.sum_outputs(op, op.Sub(positive_part(op, residual), rest))


def quantiles_of_scores(op: GraphBuilder, scores: str, levels: Any) -> str:
    """Write the quantiles of increments: sums from the level next to 0.5 outwards."""
    n = len(levels)
    middle = int(np.argmin(np.abs(np.asarray(levels, dtype=np.float64) - 0.5)))
    start, steps = np.zeros((n, n)), np.zeros((n, n))
    start[middle] = 1.0
    for column in range(n):
        low, high = sorted((middle, column))
        steps[low + 1 : high + 1, column] = column > middle
        steps[low:high, column] -= column < middle
    dtype = op.dtype(scores) or op.float_dtype
    first, further = start.astype(dtype), steps.astype(dtype)
    return op.Add(op.MatMul(scores, first), op.MatMul(softplus(op, scores), further))
