"""Operators for which the builder supports some forms only."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from ...graphs import GraphBuilder
from ...graphs.nodes import attributes_of
from .gradient_path import GradientPath

__all__ = ["MICROSOFT_RULES", "RULES", "is_broadcast", "reduce_axes", "result_shape"]

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


def reduce_axes(op: GraphBuilder, op_type: str, x: str, axes: list[int], **options: Any) -> str:
    """Write a reduction, with axes as an attribute before opset 18 and as an input from then on."""
    if op.opset < 18:
        return op.node(op_type, x, axes=axes, **options)
    return op.node(op_type, x, axes, **options)


def matmul(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # A v = the only column of A [v], v B = the only row of [v] B
    left, right = node.input
    ranks = [len(op.shape(name) or ()) for name in node.input]
    if 1 not in ranks:
        return False
    product = op.MatMul(
        op.Unsqueeze(left, [0]) if ranks[0] == 1 else left,
        op.Unsqueeze(right, [1]) if ranks[1] == 1 else right,
    )
    axes = [axis for axis, rank in zip((-2, -1), ranks, strict=True) if rank == 1]
    op.Squeeze(product, axes, outputs=[node.output[0]])
    return True


def fused_matmul(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # alpha A B, or their transposes
    attributes = attributes_of(node)
    shapes = [op.shape(name) for name in node.input]
    if attributes.get("transBatchA") or attributes.get("transBatchB") or None in shapes:
        return False
    operands = list(node.input)
    for index, name in enumerate(("transA", "transB")):
        rank = len(shapes[index] or ())
        if attributes.get(name) and rank > 1:
            order = [*range(rank - 2), rank - 1, rank - 2]
            operands[index] = op.Transpose(operands[index], perm=order)
    is_vector = len(shapes[1] or ()) == 1
    if is_vector:
        operands[1] = op.Unsqueeze(operands[1], [1])
    product = op.MatMul(*operands)
    if is_vector:
        product = op.Squeeze(product, [-1])
    alpha = np.array(attributes.get("alpha", 1.0), dtype=op.dtype(node.input[0]) or np.float32)
    op.Mul(product, op.constant(alpha), outputs=[node.output[0]])
    return True


def where(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # the branches with a gradient, expanded to the shape of the result
    widened = [is_broadcast(name, node, op, path) for name in node.input[1:]]
    if not any(widened):
        return False
    shape = result_shape(node, op)
    branches = [op.Expand(x, shape) if wide else x for x, wide in zip(node.input[1:], widened, strict=True)]
    op.Where(node.input[0], *branches, outputs=[node.output[0]])
    return True


def is_broadcast(name: str, node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    """Return whether an operand with a gradient may be broadcast."""
    known, result = op.type(name), op.shape(node.output[0])
    if name not in path.reached or (known is not None and known.elem_type not in _FLOATS):
        return False
    return known is None or known.shape is None or None in known.shape or known.shape != result


def result_shape(node: NodeProto, op: GraphBuilder) -> str:
    """Return the shape of the output of a node with broadcast operands."""
    result = op.shape(node.output[0])
    if result is not None and all(isinstance(dim, int) for dim in result):
        return op.constant(list(result))
    for name in node.input:
        if result is not None and op.shape(name) == result and None not in result:
            return op.Shape(name)
    return op.Shape(op.node(node.op_type, *node.input))


def scatter(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # scatter into zeros, then add the data
    attributes = attributes_of(node)
    if attributes.get("reduction", b"none") != b"add":
        return False
    data, indices, updates = node.input
    known = op.type(data)
    if known is None or known.elem_type not in _FLOATS or data not in path.reached:
        return False
    zeros = op.Expand(op.constant(np.array(0.0, dtype=op.dtype(data))), op.Shape(data))
    total = op.node(node.op_type, zeros, indices, updates, **attributes)
    op.Add(data, total, outputs=[node.output[0]])
    return True


def clip(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # min(max(x, low), high) if a bound has a gradient, which the builder ignores
    if path.reached.isdisjoint(node.input[1:]):
        return False
    x, low, high = [*node.input, "", ""][:3]
    above = op.Max(x, low) if low else x
    op.node("Min", above, high, outputs=[node.output[0]])
    return True


def cast_like(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # x cast to the known type of another tensor
    known = op.type(node.input[1])
    if known is None:
        return False
    op.Cast(node.input[0], to=known.elem_type, outputs=[node.output[0]])
    return True


def einsum(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # tensors with the same axes: their product, summed over the axes that the result lacks
    equation = attributes_of(node).get("equation", b"").decode().replace(" ", "")
    terms, arrow, result = equation.partition("->")
    labels = terms.split(",")
    axes = labels[0]
    kept = "".join(label for label in axes if label in result)
    if not arrow or "." in axes or len(set(axes)) < len(axes) or set(labels) != {axes} or kept != result:
        return False
    first, *rest = node.input
    product = reduce(op.Mul, rest, first)
    summed = [axis for axis, label in enumerate(axes) if label not in result]
    if summed:
        op.ReduceSum(product, summed, keepdims=0, outputs=[node.output[0]])
    else:
        op.Identity(product, outputs=[node.output[0]])
    return True


#: Rewrites by operator.
RULES = {
    "CastLike": cast_like,
    "Clip": clip,
    "Einsum": einsum,
    "MatMul": matmul,
    "ScatterElements": scatter,
    "ScatterND": scatter,
    "Where": where,
}
#: The same for the domain com.microsoft.
MICROSOFT_RULES = {"FusedMatMul": fused_matmul}
