"""Expressions that several losses share."""

from __future__ import annotations

import numpy as np

from ..graphs import GraphBuilder

__all__ = ["margin", "positive_part", "softplus", "squared_part"]


def positive_part(op: GraphBuilder, values: str) -> str:
    """Write ``max(values, 0)``.

    It is written as ``(v + |v|) / 2``, whose gradient at zero is 1/2, so that training can start from scores
    of zero.
    """
    return op.Mul(op.Add(values, op.Abs(values)), 0.5)


def squared_part(op: GraphBuilder, values: str, highest: float | None = None) -> str:
    """Write ``max(values, 0) ** 2``, continued above ``highest`` by its tangent.

    The derivative is twice the clipped values, which is written once.
    """
    bounds = (0.0,) if highest is None else (0.0, highest)
    clipped = op.Clip(values, *bounds)
    return op.Mul(clipped, op.Sub(op.Mul(values, 2.0), clipped))


def softplus(op: GraphBuilder, values: str) -> str:
    """Write ``log(1 + exp(values))``.

    In float64 it is written as ``max(v, 0) + softplus(-|v|)``, since the kernel of onnxruntime overflows.
    """
    if (op.dtype(values) or op.float_dtype) == np.float32:
        return op.Softplus(values)
    return op.Add(positive_part(op, values), op.Softplus(op.Neg(op.Abs(values))))


def margin(op: GraphBuilder, expected: str, predicted: str) -> str:
    """Write ``t * z`` with ``t = 2 y - 1``, for scores z and labels y in {0, 1}."""
    return op.Mul(op.Sub(op.Mul(expected, 2.0), 1.0), predicted)
