"""Scans over the rows of a matrix that compute distances -> differences of all pairs of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

from ...graphs import GraphBuilder, initializer_arrays, prune, replace_nodes
from ...models.distances import MANY, pairwise_distances

__all__ = ["rewrite_scan_distances"]


class _Distance(NamedTuple):
    metric: str
    power: np.ndarray | None = None


def rewrite_scan_distances(model: ModelProto) -> ModelProto:
    """Return the model without the Scans that compute distances between the rows of two matrices.

    Such a Scan carries one matrix unchanged and reads the rows of the other; its body reduces their
    difference: the form that skl2onnx gives Gaussian processes, nearest neighbours and kernels.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model with the same outputs; a Scan of another kind stays.
    """
    arrays = initializer_arrays(model)
    transposed: dict[str, str] = {}

    def scan(node: NodeProto, op: GraphBuilder) -> bool:
        distance = _distance(node, arrays)
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
        perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), [1, 0])
        if perm == [1, 0]:
            op.Identity(transposed[node.input[0]], outputs=[node.output[0]])
        return perm == [1, 0]

    result = replace_nodes(model, {("", "Scan"): scan, ("", "Transpose"): transpose})
    return model if result is model else prune(result)


def _size(op: GraphBuilder, name: str) -> int:
    shape = op.shape(name) or ()
    return int(np.prod([dim for dim in shape if isinstance(dim, int)]))


def _distance(node: NodeProto, outer: dict[str, np.ndarray]) -> _Distance | None:
    """Return what a Scan computes, None where that is no distance."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    body = attributes.pop("body")
    if attributes.pop("num_scan_inputs") != 1 or any(any(values) for values in attributes.values()):
        return None  # another axis, or backwards
    if len(node.input) != 2 or len(node.output) != 2 or len(body.output) != 2:
        return None
    return _Body(body, outer).distance()


class _Body:
    """The body of a Scan: a matrix and one row in, the matrix and one number for each of its rows out."""

    def __init__(self, graph: GraphProto, outer: dict[str, np.ndarray]):
        self.matrix, self.row = (value.name for value in graph.input)
        self.results = [value.name for value in graph.output]
        self.producers = {name: node for node in graph.node for name in node.output}
        self.constants = {**outer}
        self.constants.update({t.name: numpy_helper.to_array(t) for t in graph.initializer})

    def distance(self) -> _Distance | None:
        carried, result = (self._source(name) for name in self.results)
        if carried != self.matrix:
            return None
        node = self.producers.get(result)
        if node is not None and node.op_type == "Sqrt":
            found = self._reduced(self.producers.get(self._source(node.input[0])))
            return _Distance("euclidean") if found == _Distance("sqeuclidean") else None
        return self._reduced(node)

    def _source(self, name: str) -> str:
        """Return the tensor that a tensor equals."""
        while name in self.producers and self.producers[name].op_type == "Identity":
            name = self.producers[name].input[0]
        return name

    def _reduced(self, node: NodeProto | None) -> _Distance | None:
        """Return the distance that a node sums up over the columns."""
        if node is None or not self._reduces_columns(node):
            return None
        operand = self._source(node.input[0])
        if node.op_type in ("ReduceSumSquare", "ReduceL1", "ReduceL2"):
            metric = {"ReduceSumSquare": "sqeuclidean", "ReduceL1": "manhattan", "ReduceL2": "euclidean"}
            return _Distance(metric[node.op_type]) if self._is_difference(operand) else None
        inner = self.producers.get(operand)
        if inner is None or node.op_type not in ("ReduceSum", "ReduceMax"):
            return None
        if inner.op_type == "Abs" and self._is_difference(self._source(inner.input[0])):
            return _Distance("manhattan" if node.op_type == "ReduceSum" else "chebyshev")
        if node.op_type == "ReduceMax":
            return None
        if inner.op_type == "Mul":
            left, right = (self._source(name) for name in inner.input)
            return _Distance("sqeuclidean") if left == right and self._is_difference(left) else None
        return self._power(inner) if inner.op_type == "Pow" else None

    def _reduces_columns(self, node: NodeProto) -> bool:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        axes = attributes.get("axes", self.constants.get(node.input[1]) if len(node.input) > 1 else None)
        return axes is not None and list(axes) in ([1], [-1]) and attributes.get("keepdims", 1) == 0

    def _power(self, node: NodeProto) -> _Distance | None:
        exponent = self.constants.get(node.input[1])
        base = self._source(node.input[0])
        if exponent is None or exponent.size != 1:
            return None
        if self._is_difference(base):
            return _Distance("sqeuclidean") if exponent == 2 else None
        inner = self.producers.get(base)
        if inner is None or inner.op_type != "Abs" or not self._is_difference(self._source(inner.input[0])):
            return None
        return _Distance("minkowski", exponent)

    def _is_difference(self, name: str) -> bool:
        node = self.producers.get(name)
        if node is None or node.op_type != "Sub":
            return False
        return {self._source(operand) for operand in node.input} == {self.matrix, self.row}
