"""Find the raw scores from which a graph computes probabilities."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto

from ..graphs import TensorType
from ..graphs.nodes import attribute
from ..graphs.view import GraphView

__all__ = ["find_raw_scores"]

#: Operators that do not change probabilities.
_SAME = ("Identity", "Cast", "Reshape", "Dropout")
#: Operators between a matrix and the sum by which it is normalised.
_GUARDS = ("Abs", "Add", "Cast", "Equal", "Identity", "Max", "ReduceSum", "Reshape", "Where")
#: Operators that compute probabilities from unknown scores.
_PROBABILITIES = ("Exp", "LpNormalization", "Normalizer", "Reciprocal", "Sigmoid", "Softmax")

#: Names of the probabilities of a classifier in files of converters.
_NAMES_OF_PROBABILITIES = ("probabilities", "output_probability")


def find_raw_scores(model: ModelProto, output: str, types: Mapping[str, TensorType]) -> str:
    """Return the input of the softmax or sigmoid of an output, or the output itself without either."""
    graph = _Graph(model, types)
    scores = graph.scores(output)
    if scores is None and (output in _NAMES_OF_PROBABILITIES or graph.is_probability(output)):
        raise ValueError(
            f"The loss takes raw scores, and output {output!r} has probabilities that are neither the "
            "softmax nor the sigmoid of a tensor of the graph. Set output_index to an output with raw scores."
        )
    return output if scores is None else scores


class _Graph(GraphView):
    """A graph, searched from its outputs backwards."""

    def node(self, name: str) -> NodeProto | None:
        """Return the node that computes a tensor, ignoring nodes that do not change it."""
        return self.producer(name, passing=_SAME)

    def scores(self, name: str) -> str | None:
        """Return the scores of a matrix of probabilities, or None if they are not found."""
        node = self.node(name)
        if node is None:
            return None
        if node.op_type == "Softmax" and self.is_by_columns(node):
            return node.input[0]
        if node.op_type == "Sigmoid" and self.width(name) == 1:
            return node.input[0]
        if node.op_type == "Div" and self.is_normalized(node):
            return self.scores(node.input[0])
        if node.op_type == "Concat" and len(node.input) == 2 and self.is_complement(*node.input):
            return self.scores(node.input[1])
        return None

    def is_probability(self, name: str) -> bool:
        """Return whether a matrix is known to contain probabilities."""
        node = self.node(name)
        if node is None:
            return False
        if node.op_type == "Concat":
            pair = len(node.input) == 2 and self.is_complement(*node.input)
            return pair or any(map(self.is_probability, node.input))
        by_sum = node.op_type == "Div" and self.is_normalized(node)
        return by_sum or node.op_type in _PROBABILITIES

    def width(self, name: str) -> int | None:
        """Return the number of columns of a matrix."""
        shape = self.op.shape(name)
        return shape[1] if shape is not None and len(shape) == 2 and isinstance(shape[1], int) else None

    def is_by_columns(self, node: NodeProto) -> bool:
        """Return whether a softmax is taken over the columns of a matrix."""
        return attribute(node, "axis", -1) in (-1, 1)

    def is_complement(self, first: str, second: str) -> bool:
        """Return whether a column is 1 minus another."""
        node = self.node(first)
        if node is None or node.op_type != "Sub" or self.node(second) is None:
            return False
        one = self.value(self.origin(node.input[0], _SAME))
        return one is not None and bool(np.all(one == 1)) and self.node(node.input[1]) == self.node(second)

    def is_normalized(self, node: NodeProto) -> bool:
        """Return whether a matrix is divided by its own sum, possibly with a guard against zero."""
        pending, sums = [node.input[1]], 0
        while pending:
            name = pending.pop()
            producer = self.producers.get(name)
            if name == node.input[0] or producer is None or producer.op_type == "Constant":
                continue
            if producer.op_type not in _GUARDS:
                return False
            sums += producer.op_type == "ReduceSum"
            pending.extend(producer.input)
        return sums > 0
