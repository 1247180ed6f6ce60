"""Gradient clipping."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...graphs import GraphBuilder

__all__ = ["clip_gradients"]


def clip_gradients(
    op: GraphBuilder,
    gradients: Mapping[str, str],
    clip_value: float | None = None,
    clip_norm: float | None = None,
) -> dict[str, str]:
    """Write the clipping of the gradients of all weights, by value and then by their joint euclidean norm.

    By norm, all are multiplied by ``min(1, clip_norm / norm)``: Pascanu, R., Mikolov, T. and Bengio, Y., "On
    the difficulty of training recurrent neural networks", ICML 2013, algorithm 1. Unlike in PyTorch, the
    quotient is exact: gradients within the bound do not change. Non-finite ones stay so, and the training
    detects them.
    """
    clipped = dict(gradients)
    if clip_value is not None:
        bound = float(clip_value)
        clipped = {weight: op.Clip(name, -bound, bound) for weight, name in clipped.items()}
    if clip_norm is not None:
        factor = _factor(op, list(clipped.values()), float(clip_norm))
        clipped = {weight: op.Mul(name, factor) for weight, name in clipped.items()}
    return clipped


def _factor(op: GraphBuilder, gradients: list[str], bound: float) -> str:
    """Write ``min(1, bound / norm)``.

    Entries are divided by the largest one, whose square might overflow. If all are zero, the quotient is
    infinite and the factor one.
    """
    tiny = float(np.finfo(op.float_dtype).tiny)
    largest = op.Max(*(op.ReduceMax(op.Abs(name), keepdims=0) for name in gradients), tiny)
    squares = [op.ReduceSumSquare(op.Div(name, largest), keepdims=0) for name in gradients]
    norm = op.Sqrt(op.Sum(*squares) if len(squares) > 1 else squares[0])
    return op.Min(op.Div(op.Div(bound, largest), norm), 1.0)
