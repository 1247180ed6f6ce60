"""Expressions that several losses share, of operators that both gradient backends know."""

from __future__ import annotations

import numpy as np

from ..graphs import GraphBuilder

__all__ = ["margin", "positive_part", "softplus"]


def positive_part(op: GraphBuilder, values: str) -> str:
    """Write ``max(values, 0)``.

    Written as ``(v + |v|) / 2``, whose gradient is 1/2 at zero, so that a model that starts from zero
    scores is trained.
    """
    return op.Mul(op.Add(values, op.Abs(values)), 0.5)


def softplus(op: GraphBuilder, values: str) -> str:
    """Write ``log(1 + exp(values))``.

    In float64 written as ``max(v, 0) + softplus(-|v|)``, since onnxruntime's kernel overflows.
    """
    if (op.dtype(values) or op.float_dtype) == np.float32:
        return op.Softplus(values)
    return op.Add(positive_part(op, values), op.Softplus(op.Neg(op.Abs(values))))


def margin(op: GraphBuilder, expected: str, predicted: str) -> str:
    """Write ``t * z`` of scores z and labels in {0, 1}, as t in {-1, 1}."""
    return op.Mul(op.Sub(op.Mul(expected, 2.0), 1.0), predicted)
