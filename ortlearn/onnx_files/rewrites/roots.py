"""Roots of sums of squares and of powers: finite gradients where the sum is zero.

The slope of a root at zero is infinite, that of the sum is zero, and their product is not a number.
Zero, which is in the subdifferential of a norm at zero, is a gradient there.
"""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from ...graphs import GraphBuilder, initializer_arrays, replace_nodes
from ...models.distances import guarded_sqrt

__all__ = ["guard_roots"]

#: Operators that only pass values on.
_PASSING = {"Transpose", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Cast"}
#: What makes a number that is not negative, and flat where it is zero.
_FLAT_AT_ZERO = {"Abs", "Pow", "Mul"}


def guard_roots(model: ModelProto) -> ModelProto:
    """Return the model with roots of sums that have a gradient where the sum is zero.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model with the same outputs: the square root of zero is 1e-19 (float32), other roots are zero.
    """
    graph = _Sums(model)

    def sqrt(node: NodeProto, op: GraphBuilder) -> bool:
        x = node.input[0]
        if not graph.is_sum(x) or not _is_float(op, x):
            return False
        guarded_sqrt(op, x, op.dtype(x), outputs=[node.output[0]])
        return True

    def power(node: NodeProto, op: GraphBuilder) -> bool:
        x, exponent = node.input
        value = graph.arrays.get(exponent)
        if value is None or value.size != 1 or not 0 < value.item() < 1 or not graph.is_sum(x):
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


class _Sums:
    """Which tensors of a graph are sums of squares or of powers."""

    def __init__(self, model: ModelProto):
        self.arrays = initializer_arrays(model)
        self.producers = {name: node for node in model.graph.node for name in node.output}

    def is_sum(self, name: str) -> bool:
        node = self._producer(name)
        if node is None:
            return False
        if node.op_type == "ReduceSumSquare":
            return True
        if node.op_type == "Max":  # of a difference of products and zero
            return any(self.arrays.get(x, np.ones(1)).size == 1 and not self.arrays[x].any()
                       for x in node.input if x in self.arrays)  # fmt: skip
        if node.op_type != "ReduceSum":
            return False
        inner = self._producer(node.input[0])
        if inner is None or inner.op_type not in _FLAT_AT_ZERO:
            return False
        return inner.op_type != "Mul" or inner.input[0] == inner.input[1]

    def _producer(self, name: str) -> NodeProto | None:
        node = self.producers.get(name)
        while node is not None and node.op_type in _PASSING:
            node = self.producers.get(node.input[0])
        return node
