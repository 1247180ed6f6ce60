"""Replace Scan operators that compute pairwise distances between the rows of two matrices."""

from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto

from ...graphs import GraphBuilder, prune, replace_nodes
from ...graphs.nodes import attribute, attributes_of
from ...graphs.patterns import PatternView
from ...graphs.view import GraphView
from ...models.formulas.distances import MANY, pairwise_distances

SQUARES = (("ReduceSumSquare", "d"), ("ReduceSum", ("Mul", "d", "d")), ("ReduceSum", ("Pow", "d", 2)))
#: Metrics by their patterns in the differences d of the columns.
METRICS: dict[Any, str] = {
    **dict.fromkeys(SQUARES, "sqeuclidean"),
    **dict.fromkeys((("Sqrt", squares) for squares in SQUARES), "euclidean"),
    ("ReduceL2", "d"): "euclidean",
    ("ReduceL1", "d"): "manhattan",
    ("ReduceSum", ("Abs", "d")): "manhattan",
    ("ReduceMax", ("Abs", "d")): "chebyshev",
    ("ReduceSum", ("Pow", ("Abs", "d"), "power")): "minkowski",
}


def rewrite_scan_distances(model: ModelProto) -> ModelProto:
    """Return the model with Scan operators that compute pairwise distances replaced by the distances."""
    # skl2onnx writes Gaussian processes, nearest neighbours and kernels in this form: a Scan over the rows of
    # one matrix has the other one as state, and its body reduces differences.
    graph = GraphView(model)
    transposed: dict[str, str] = {}

    def scan(node: NodeProto, op: GraphBuilder) -> bool:
        metric, power = _distance(node, graph)
        matrix, *others = node.input
        if not metric or (metric not in ("sqeuclidean", "euclidean") and _size(op, others[0]) > MANY):
            return False
        result = pairwise_distances(op, matrix, others[0], metric, power)
        transposed[node.output[1]] = result
        op.Transpose(result, perm=[1, 0], outputs=[node.output[1]])
        if node.output[0]:
            op.Identity(matrix, outputs=[node.output[0]])
        return True

    def transpose(node: NodeProto, op: GraphBuilder) -> bool | str:
        turned = list(attribute(node, "perm", [1, 0])) == [1, 0]
        return transposed.get(node.input[0], False) if turned else False

    result = replace_nodes(model, {("", "Scan"): scan, ("", "Transpose"): transpose})
    return model if result is model else prune(result)


def _size(op: GraphBuilder, name: str) -> int:
    return int(np.prod([dim for dim in op.shape(name) or () if isinstance(dim, int)]))


class _Body(PatternView):
    """Body of a Scan: maps a matrix and a row to the matrix and a value for each of its rows."""

    def __init__(self, graph: GraphProto, outer: GraphView):
        super().__init__(graph)
        self._outer = outer

    def value(self, name: str) -> np.ndarray | None:
        """Return the value of a constant of the body or of the outer graph."""
        value = super().value(name)
        return self._outer.value(name) if value is None and name not in self.producers else value


def _distance(node: NodeProto, outer: GraphView) -> tuple[str, np.ndarray | None]:
    """Return the metric of a Scan, and its power for ``"minkowski"``; an empty metric for others."""
    attributes = attributes_of(node)
    graph = attributes.pop("body")
    if attributes.pop("num_scan_inputs") != 1 or any(any(values) for values in attributes.values()):
        return "", None  # another axis or direction
    if len(node.input) != 2 or len(node.output) != 2 or len(graph.output) != 2:
        return "", None
    body = _Body(graph, outer)
    matrix, row = (value.name for value in graph.input)
    carried, result = map(body.origin, body.outputs)
    for pattern, metric in METRICS.items():
        found = body.match(result, pattern)
        if found is None or carried != matrix or not _reduces_columns(body, result):
            continue
        operands = body.match(found["d"], ("Sub", "left", "right")) or {}
        power = body.value(found["power"]) if "power" in found else None
        is_known = "power" not in found or (power is not None and power.size == 1)
        if is_known and set(operands.values()) == {matrix, row}:
            return metric, power
    return "", None


def _reduces_columns(body: _Body, name: str) -> bool:
    node = body.producer(body.origin(name, ("Identity", "Sqrt")))
    axes = None if node is None else attribute(node, "axes")
    if node is None or attribute(node, "keepdims", 1):
        return False
    axes = body.value(node.input[1]) if axes is None and len(node.input) > 1 else axes
    return axes is not None and list(axes) in ([1], [-1])
