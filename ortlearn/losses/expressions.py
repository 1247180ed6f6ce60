"""Expressions that several losses share, of operators that both gradient backends know."""

from __future__ import annotations

import numpy as np

from ..graphs import GraphBuilder

__all__ = ["margin", "positive_part", "softplus"]


def positive_part(op: GraphBuilder, values: str) -> str:
    """Write ``max(values, 0)``.

    It is written ``(v + |v|) / 2``, whose gradient is 1/2 at zero: a model that starts from zero
    scores leaves a kink there.
    """
    return op.Mul(op.Add(values, op.Abs(values)), 0.5)


def softplus(op: GraphBuilder, values: str) -> str:
    """Write ``log(1 + exp(values))``.

    In float64 it is ``max(v, 0) + softplus(-|v|)``: onnxruntime's own kernel overflows there.
    """
    if (op.dtype(values) or op.float_dtype) == np.float32:
        return op.Softplus(values)
    return op.Add(positive_part(op, values), op.Softplus(op.Neg(op.Abs(values))))


def margin(op: GraphBuilder, expected: str, predicted: str) -> str:
    """Write ``t * z`` of scores z and labels in {0, 1}, as t in {-1, 1}."""
    return op.Mul(op.Sub(op.Mul(expected, 2.0), 1.0), predicted)
