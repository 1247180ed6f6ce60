"""Operators that compute with each sample on its own: Scaler, Imputer, Normalizer, LpNormalization, CDist."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ...graphs import GraphBuilder
from ...models.distances import pairwise_distances
from .common import Fused

__all__ = ["cdist", "imputer", "lp_normalization", "normalizer", "scaler"]


def scaler(fused: Fused) -> bool:
    """Write a scaler as ``(x - offset) * scale``."""
    offset = np.asarray(fused.attribute("offset", [0.0]), dtype=np.float32)
    scale = np.asarray(fused.attribute("scale", [1.0]), dtype=np.float32)
    centred = fused.op.Sub(fused.float_input(), fused.weight("offset", offset))
    fused.write("Mul", centred, fused.weight("scale", scale))
    fused.note_output(fused.op.shape(fused.node.input[0]))
    return True


def imputer(fused: Fused) -> bool:
    """Write an imputer as a choice between its input and one imputed value for each column."""
    x, op = fused.node.input[0], fused.op
    known = op.type(x)
    if known is None or known.elem_type not in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64):
        return False
    integers = known.elem_type == TensorProto.INT64
    values = fused.attribute("imputed_value_int64s" if integers else "imputed_value_floats", [])
    if not len(values):
        return False
    missing = fused.attribute("replaced_value_int64" if integers else "replaced_value_float", 0)
    dtype = op.dtype(x)
    imputed = fused.weight("imputed_value", np.asarray(values, dtype=dtype))
    chosen = op.IsNaN(x) if np.isnan(missing) else op.Equal(x, op.constant(missing, dtype))
    fused.write("Where", chosen, imputed, x)
    fused.note_output(known.shape, known.elem_type)
    return True


def normalizer(fused: Fused) -> bool:
    """Write a normalizer; MAX divides by the largest value, not by the largest absolute value.

    A sample whose norm is zero stays as it is.
    """
    norm = fused.text("norm", "MAX")
    if norm not in ("MAX", "L1", "L2"):
        return False
    fused.write("Div", *_divide_by_norm(fused.op, fused.float_input(), norm, -1))
    fused.note_output(fused.op.shape(fused.node.input[0]))
    return True


def lp_normalization(fused: Fused) -> bool:
    """Write a normalization by the sum of absolute values, or by the Euclidean norm.

    What has norm zero stays as it is.
    """
    norm = {1: "L1", 2: "L2"}.get(fused.attribute("p", 2))
    if norm is None:
        return False
    operands = _divide_by_norm(fused.op, fused.node.input[0], norm, fused.attribute("axis", -1))
    fused.write("Div", *operands)
    return True


def _divide_by_norm(op: GraphBuilder, x: str, norm: str, axis: int) -> tuple[str, str]:
    """Return the operands that normalize a tensor: itself and its norm, one where that is zero.

    The norm is the largest value, the sum of absolute values, or the Euclidean norm, for ``"MAX"``, ``"L1"``
    and ``"L2"``.
    """
    dtype = op.dtype(x)
    if norm == "MAX":
        size = op.ReduceMax(x, axes=[axis]) if op.opset < 18 else op.ReduceMax(x, [axis])
    else:
        size = op.ReduceSum(op.Abs(x) if norm == "L1" else op.Mul(x, x), [axis])
    one = op.constant(1.0, dtype)
    safe = op.Where(op.Equal(size, op.constant(0.0, dtype)), one, size)
    return x, op.Sqrt(safe) if norm == "L2" else safe


def cdist(fused: Fused) -> bool:
    """Write the distances between the rows of two matrices."""
    metric = fused.text("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        return False
    a, b = fused.node.input
    result = pairwise_distances(fused.op, a, b, metric)
    fused.write("Identity", result)
    return True
