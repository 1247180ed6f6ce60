"""Scans over the rows of a matrix that compute distances -> differences of all pairs of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto

from ...graphs import GraphBuilder, prune, replace_nodes
from ...graphs.nodes import attribute, attributes_of
from ...graphs.view import GraphView
from ...models.distances import MANY, pairwise_distances

__all__ = ["rewrite_scan_distances"]


class _Distance(NamedTuple):
    metric: str
    power: np.ndarray | None = None


def rewrite_scan_distances(model: ModelProto) -> ModelProto:
    """Return the model without the Scans that compute distances between the rows of two matrices.

    Such a Scan carries one matrix unchanged and reads the rows of the other; its body reduces their
    difference: the form that skl2onnx gives Gaussian processes, nearest neighbours and kernels. A Scan of
    another kind stays.
    """
    graph = GraphView(model)
    transposed: dict[str, str] = {}

    def scan(node: NodeProto, op: GraphBuilder) -> bool:
        distance = _distance(node, graph)
        if distance is None:
            return False
        matrix, rows = node.input
        if distance.metric not in ("sqeuclidean", "euclidean") and _size(op, rows) > MANY:
            return False
        result = pairwise_distances(op, matrix, rows, *distance)
        transposed[node.output[1]] = result
        op.Transpose(result, perm=[1, 0], outputs=[node.output[1]])
        if node.output[0]:
            op.Identity(matrix, outputs=[node.output[0]])
        return True

    def transpose(node: NodeProto, op: GraphBuilder) -> bool:
        if node.input[0] not in transposed:
            return False
        turned = list(attribute(node, "perm", [1, 0])) == [1, 0]
        if turned:
            op.Identity(transposed[node.input[0]], outputs=[node.output[0]])
        return turned

    result = replace_nodes(model, {("", "Scan"): scan, ("", "Transpose"): transpose})
    return model if result is model else prune(result)


def _size(op: GraphBuilder, name: str) -> int:
    shape = op.shape(name) or ()
    return int(np.prod([dim for dim in shape if isinstance(dim, int)]))


def _distance(node: NodeProto, outer: GraphView) -> _Distance | None:
    """Return what a Scan computes, None where that is no distance."""
    attributes = attributes_of(node)
    body = attributes.pop("body")
    if attributes.pop("num_scan_inputs") != 1 or any(any(values) for values in attributes.values()):
        return None  # another axis, or backwards
    if len(node.input) != 2 or len(node.output) != 2 or len(body.output) != 2:
        return None
    return _Body(body, outer).distance()


class _Body(GraphView):
    """The body of a Scan: a matrix and one row in, the matrix and one number for each of its rows out."""

    def __init__(self, graph: GraphProto, outer: GraphView):
        self.matrix, self.row = (value.name for value in graph.input)
        super().__init__(graph)
        self._outer = outer

    def distance(self) -> _Distance | None:
        carried, result = (self.origin(name) for name in self.outputs)
        if carried != self.matrix:
            return None
        node = self.producers.get(result)
        if node is not None and node.op_type == "Sqrt":
            found = self._reduced(self.producers.get(self.origin(node.input[0])))
            return _Distance("euclidean") if found == _Distance("sqeuclidean") else None
        return self._reduced(node)

    def _reduced(self, node: NodeProto | None) -> _Distance | None:
        """Return the distance that a node sums up over the columns."""
        if node is None or not self._reduces_columns(node):
            return None
        operand = self.origin(node.input[0])
        if node.op_type in ("ReduceSumSquare", "ReduceL1", "ReduceL2"):
            metric = {"ReduceSumSquare": "sqeuclidean", "ReduceL1": "manhattan", "ReduceL2": "euclidean"}
            return _Distance(metric[node.op_type]) if self._is_difference(operand) else None
        inner = self.producers.get(operand)
        if inner is None or node.op_type not in ("ReduceSum", "ReduceMax"):
            return None
        if inner.op_type == "Abs" and self._is_difference(self.origin(inner.input[0])):
            return _Distance("manhattan" if node.op_type == "ReduceSum" else "chebyshev")
        if node.op_type == "ReduceMax":
            return None
        if inner.op_type == "Mul":
            left, right = (self.origin(name) for name in inner.input)
            return _Distance("sqeuclidean") if left == right and self._is_difference(left) else None
        return self._power(inner) if inner.op_type == "Pow" else None

    def _reduces_columns(self, node: NodeProto) -> bool:
        axes = self._constant_of(node.input[1]) if len(node.input) > 1 else attribute(node, "axes")
        return axes is not None and list(axes) in ([1], [-1]) and attribute(node, "keepdims", 1) == 0

    def _constant_of(self, name: str) -> np.ndarray | None:
        """Return the value of a constant of the body, or of the graph around it."""
        value = self.value(name)
        return self._outer.value(name) if value is None and name not in self.producers else value

    def _power(self, node: NodeProto) -> _Distance | None:
        exponent = self._constant_of(node.input[1])
        base = self.origin(node.input[0])
        if exponent is None or exponent.size != 1:
            return None
        if self._is_difference(base):
            return _Distance("sqeuclidean") if exponent == 2 else None
        inner = self.producers.get(base)
        if inner is None or inner.op_type != "Abs" or not self._is_difference(self.origin(inner.input[0])):
            return None
        return _Distance("minkowski", exponent)

    def _is_difference(self, name: str) -> bool:
        node = self.producers.get(name)
        if node is None or node.op_type != "Sub":
            return False
        return {self.origin(operand) for operand in node.input} == {self.matrix, self.row}
