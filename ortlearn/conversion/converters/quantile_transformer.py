"""QuantileTransformer: a search by halves in the quantiles of each column, and interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from ...exceptions import ConversionError
from ...graphs import GraphBuilder
from .writing import add_nodes, add_weight, start, write_as

__all__ = ["convert"]


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Write the share of a column's quantiles that a value is above.

    Between the quantiles q_i and q_{i+1} of n it is ``(i + (x - q_i) / (q_{i+1} - q_i)) / (n - 1)``, 0
    below the first one and 1 above the last. A value that several quantiles equal lies in the middle of
    them, as in scikit-learn. Values that are missing stay so.
    """
    estimator = operator.raw_operator
    if estimator.output_distribution != "uniform":
        raise ConversionError(
            "output_distribution='normal' is not converted: ONNX lacks quantiles of the normal distribution"
        )
    op, x = start(scope, operator)
    n = len(estimator.quantiles_)
    missing = op.Sub(x, x)  # 0, or not a number
    if n == 1:
        write_as(op, missing, operator.outputs[0])
        add_nodes(container, op)
        return
    quantiles = add_weight(op, "quantiles", estimator.quantiles_)
    first, last = (op.Gather(quantiles, [i], axis=0) for i in (0, n - 1))
    above = _where(op, op.GreaterOrEqual(x, last))
    inside = _where(op, op.And(op.Greater(x, first), op.Less(x, last)))
    # Equal quantiles: the last of them, and the first.
    ends = [_position(op, quantiles, x, kind, n) for kind in ("LessOrEqual", "Less")]
    share = op.Mul(op.Add(*ends), 0.5 / (n - 1))
    lowest = _where(op, op.Equal(x, first))
    result = op.Mul(op.Add(op.Mul(inside, share), above), op.Sub(1.0, lowest))
    write_as(op, op.Add(result, missing), operator.outputs[0])
    add_nodes(container, op)


def _where(op: GraphBuilder, condition: str) -> str:
    return op.Cast(condition, to=helper.np_dtype_to_tensor_dtype(np.dtype(op.float_dtype)))


def _position(op: GraphBuilder, quantiles: str, x: str, comparison: str, n: int) -> str:
    """Append the number of the quantile below a value, and how far it is to the next."""
    index = _search(op, quantiles, x, comparison, n)
    low = op.GatherElements(quantiles, index, axis=0)
    high = op.GatherElements(quantiles, op.Add(index, 1), axis=0)
    width = op.Sub(high, low)
    # Outside of the quantiles, where what is computed here does not count, a width may be 0.
    safe = op.Add(width, _where(op, op.LessOrEqual(width, 0.0)))
    number = op.Cast(index, to=helper.np_dtype_to_tensor_dtype(np.dtype(op.float_dtype)))
    return op.Add(number, op.Div(op.Sub(x, low), safe))


def _search(op: GraphBuilder, quantiles: str, x: str, comparison: str, n: int) -> str:
    """Append how many of the quantiles between the first and the last are below x, or equal to it."""
    index = op.Cast(op.Mul(_where(op, op.Equal(x, x)), 0.0), to=TensorProto.INT64)
    for power in reversed(range((n - 1).bit_length())):
        step = 2**power
        candidate = op.Add(index, step)
        value = op.GatherElements(quantiles, op.Min(candidate, n - 2), axis=0)
        below = op.And(op.node(comparison, value, x), op.LessOrEqual(candidate, n - 2))
        index = op.Add(index, op.Mul(op.Cast(below, to=TensorProto.INT64), step))
    return index
