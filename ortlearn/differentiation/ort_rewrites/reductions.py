"""Reductions written with ReduceSum; Sum and Mean written with Add."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from onnx import NodeProto

from ...graphs import GraphBuilder
from ...graphs.nodes import attributes_of
from .gradient_path import GradientPath

__all__ = ["LAST_RULES", "RULES"]


def _reduce_sum(op: GraphBuilder, node: NodeProto, x: str, **changed: Any) -> str:
    """Sum over the axes of another reduction."""
    attributes = attributes_of(node)
    axes: Any = node.input[1] if len(node.input) > 1 else attributes.pop("axes", "")
    return op.ReduceSum(x, axes, **{**attributes, **changed})


def scalar_reduction(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # a scalar is its own sum and mean; the builder adds an axis to its gradient
    if op.shape(node.input[0]) != ():
        return False
    op.Identity(node.input[0], outputs=[node.output[0]])
    return True


def sum_of_squares(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # sum(x^2) = sum(x x)
    x = node.input[0]
    _reduce_sum(op, node, op.Mul(x, x), outputs=[node.output[0]])
    return True


def sum_of_absolute_values(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # sum(|x|)
    _reduce_sum(op, node, op.Abs(node.input[0]), outputs=[node.output[0]])
    return True


def log_of_sum(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # log(sum(x))
    op.Log(_reduce_sum(op, node, node.input[0]), outputs=[node.output[0]])
    return True


def with_kept_dimensions(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # the builder only supports keepdims=1
    attributes = attributes_of(node)
    if attributes.get("keepdims", 1):
        return False
    kept = op.node(node.op_type, *node.input, **{**attributes, "keepdims": 1})
    axes: Any = node.input[1] if len(node.input) > 1 else attributes.get("axes", "")
    op.Squeeze(kept, axes, outputs=[node.output[0]])
    return True


def extremum(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # the mean of the elements equal to the largest (or smallest) one
    x = node.input[0]
    known = op.type(x)
    if known is None:
        return False
    kept = {**attributes_of(node), "keepdims": 1}
    chosen = op.Equal(x, op.node(node.op_type, *node.input, **kept))
    zero = op.constant(np.array(0, dtype=op.dtype(x)))
    total = _reduce_sum(op, node, op.Where(chosen, x, zero))
    count = _reduce_sum(op, node, op.Cast(chosen, to=known.elem_type))
    op.Div(total, count, outputs=[node.output[0]])
    return True


def sum_of_tensors(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # (a + b) + c ...
    if len(node.input) == 1:
        op.Identity(node.input[0], outputs=[node.output[0]])
        return True
    *first, last = node.input
    op.Add(reduce(op.Add, first), last, outputs=[node.output[0]])
    return True


def mean_of_tensors(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # ((a + b) + c ...) / n
    count = op.constant(np.array(len(node.input), dtype=op.dtype(node.output[0]) or np.float32))
    op.Div(reduce(op.Add, node.input), count, outputs=[node.output[0]])
    return True


def mean(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # sum(x) / (size of x / size of the sum): the builder divides integers, by zero for empty inputs, and
    # scales by a float32
    if scalar_reduction(node, op, path):
        return True
    x = node.input[0]
    known, shape = op.type(x), op.shape(x)
    whole = shape is not None and all(isinstance(dim, int) and dim > 0 for dim in shape)
    if known is None or (whole and op.dtype(x) == np.float32):
        return False
    total = _reduce_sum(op, node, x)
    sizes = [op.Cast(op.Size(name), to=known.elem_type) for name in (x, total)]
    op.Div(total, op.Div(*sizes), outputs=[node.output[0]])
    return True


#: Rewrites applied after the others, when more shapes are known.
LAST_RULES = {"ReduceMean": mean, "ReduceSum": scalar_reduction}
#: Rewrites by operator.
RULES = {
    "Mean": mean_of_tensors,
    "ReduceL1": sum_of_absolute_values,
    "ReduceL2": with_kept_dimensions,
    "ReduceLogSum": log_of_sum,
    "ReduceLogSumExp": with_kept_dimensions,
    "ReduceMax": extremum,
    "ReduceMin": extremum,
    "ReduceSumSquare": sum_of_squares,
    "Sum": sum_of_tensors,
}
