"""Operators on single samples: Scaler, Imputer, Normalizer, LpNormalization, CDist."""

import numpy as np
from onnx import TensorProto

from ...models.distances import pairwise_distances, reduced
from .common import Fused


def scaler(fused: Fused) -> bool:
    """Write a scaler as ``(x - offset) * scale``."""
    offset, scale = (fused.per_column(name).astype(np.float32) for name in ("offset", "scale"))
    centred = fused.op.Sub(fused.float_input(), fused.weight("offset", offset))
    result = fused.op.Mul(centred, fused.weight("scale", scale))
    return fused.give_like(result, fused.op.shape(fused.node.input[0]))


def imputer(fused: Fused) -> bool:
    """Write an imputer as a choice between its input and one imputed value for each column."""
    x, op = fused.node.input[0], fused.op
    known = op.type(x)
    integers = known is not None and known.elem_type == TensorProto.INT64
    values = fused.per_column("imputed_value_int64s" if integers else "imputed_value_floats")
    if known is None or known.elem_type not in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64):
        return False
    missing = fused.attribute("replaced_value_int64" if integers else "replaced_value_float", 0)
    imputed = fused.weight("imputed_value", values.astype(op.dtype(x)))
    chosen = op.IsNaN(x) if np.isnan(missing) else op.Equal(x, op.constant(missing, op.dtype(x)))
    return fused.give_like(op.Where(chosen, imputed, x), known.shape, known.elem_type)


def normalizer(fused: Fused) -> bool:
    """Write a normalizer; MAX divides by the largest value, not the largest absolute value."""
    norm = fused.text("norm", "MAX", ("MAX", "L1", "L2"))
    result = _normalized(fused, fused.float_input(), norm, -1)
    return fused.give_like(result, fused.op.shape(fused.node.input[0]))


def lp_normalization(fused: Fused) -> bool:
    """Write a normalization by the sum of absolute values, or by the Euclidean norm."""
    norm = {1: "L1", 2: "L2"}[fused.attribute("p", 2)]
    return fused.give(_normalized(fused, fused.node.input[0], norm, fused.attribute("axis", -1)))


def _normalized(fused: Fused, x: str, norm: str, axis: int) -> str:
    """Return a tensor divided by its norm along an axis, except for a norm of zero."""
    op, dtype = fused.op, fused.op.dtype(x)
    if norm == "MAX":
        size = reduced(op, "ReduceMax", x, axis)
    else:
        size = op.ReduceSum(op.Abs(x) if norm == "L1" else op.Mul(x, x), [axis])
    safe = op.Where(op.Equal(size, op.constant(0.0, dtype)), op.constant(1.0, dtype), size)
    return op.Div(x, op.Sqrt(safe) if norm == "L2" else safe)


def cdist(fused: Fused) -> bool:
    """Write Euclidean distances between the rows of two matrices; other metrics stay."""
    metric = fused.attribute("metric", b"sqeuclidean").decode()
    if metric not in ("sqeuclidean", "euclidean"):
        return False
    a, b = fused.node.input
    return fused.give(pairwise_distances(fused.op, a, b, metric))
