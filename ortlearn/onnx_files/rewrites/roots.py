"""Roots of sums of squares and of powers: finite gradients where the sum is zero.

The slope of a root at zero is infinite, that of the sum is zero, and their product is not a number.
Zero, which is in the subdifferential of a norm at zero, is a gradient there.
"""

from __future__ import annotations

from onnx import ModelProto, NodeProto, TensorProto

from ...graphs import GraphBuilder, replace_nodes
from ...graphs.view import GraphView
from ...models.distances import guarded_sqrt

__all__ = ["guard_roots"]

#: Operators that only pass values on.
_PASSING = {"Transpose", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Cast"}
#: What makes a number that is not negative, and flat where it is zero.
_FLAT_AT_ZERO = {"Abs", "Pow", "Mul"}


def guard_roots(model: ModelProto) -> ModelProto:
    """Return the model with roots of sums that have a gradient where the sum is zero.

    The square root of zero becomes 1e-19 (float32), other roots of zero are zero.
    """
    graph = GraphView(model)

    def sqrt(node: NodeProto, op: GraphBuilder) -> bool:
        x = node.input[0]
        if not _is_sum(graph, x) or not _is_float(op, x):
            return False
        guarded_sqrt(op, x, op.dtype(x), outputs=[node.output[0]])
        return True

    def power(node: NodeProto, op: GraphBuilder) -> bool:
        x, exponent = node.input
        value = graph.value(exponent)
        if value is None or value.size != 1 or not 0 < value.item() < 1 or not _is_sum(graph, x):
            return False
        if not _is_float(op, x):
            return False
        zero, one = (op.constant(number, op.dtype(x)) for number in (0.0, 1.0))
        nothing = op.Equal(x, zero)
        root = op.Pow(op.Where(nothing, one, x), exponent)
        op.Where(nothing, zero, root, outputs=[node.output[0]])
        return True

    return replace_nodes(model, {("", "Sqrt"): sqrt, ("", "Pow"): power})


def _is_float(op: GraphBuilder, name: str) -> bool:
    known = op.type(name)
    return known is not None and known.elem_type in (TensorProto.FLOAT, TensorProto.DOUBLE)


def _is_sum(graph: GraphView, name: str) -> bool:
    """Return whether a tensor is a sum of squares or of powers."""
    node = graph.producer(name, passing=_PASSING)
    if node is None:
        return False
    if node.op_type == "Max":  # of a difference of products and zero
        return any(graph.is_constant(x, 0) for x in node.input)
    if node.op_type != "ReduceSum":
        return node.op_type == "ReduceSumSquare"
    inner = graph.producer(node.input[0], passing=_PASSING)
    if inner is None or inner.op_type not in _FLAT_AT_ZERO:
        return False
    return inner.op_type != "Mul" or inner.input[0] == inner.input[1]
