"""Scalars, to whose gradient the builder adds an axis of length one."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto, NodeProto

from ...graphs import value_types
from ...graphs.nodes import copy_node
from ...graphs.view import GraphView
from .gradient_path import gradient_nodes

__all__ = ["keep_scalars"]

#: Operators whose gradient of a scalar is a scalar.
_KEEP_SCALARS = set(
    "Abs Add Cast Clip Concat Div Exp Expand Flatten Gather Identity LeakyRelu Log Max Mean Min Mul Neg "
    "Reciprocal ReduceMean ReduceSum Relu Reshape Sigmoid Sin Softplus Squeeze Sub Sum Tanh Unsqueeze".split()
)


def keep_scalars(model: ModelProto, outputs: Sequence[str], wrt: Sequence[str]) -> ModelProto:
    """Return the model with a Reshape of scalars before operators that add an axis to their gradient.

    The gradient of a Reshape has the shape of its input. The additional axis does not change values, but is
    an error for a scalar that is a sum over given axes.
    """
    if all(node.op_type in _KEEP_SCALARS for node in model.graph.node):
        return model
    types = value_types(model)
    nodes = gradient_nodes(model, outputs, wrt, types)
    reached = set(wrt).union(*(node.output for node in nodes))
    numbers = {name for name in reached if name in types and types[name].shape == ()}
    rewritten = {
        node.output[0]
        for node in nodes
        if node.op_type not in _KEEP_SCALARS and numbers.intersection(node.input)
    }

    def rule(node: NodeProto) -> bool:
        if node.output[0] in rewritten:
            inputs = [graph.op.Reshape(x, []) if x in numbers else x for x in node.input]
            graph.op.nodes.append(copy_node(node, inputs))
        return node.output[0] in rewritten

    graph = GraphView(model, types)
    return graph.to_model() if graph.rewrite(rule) else model
