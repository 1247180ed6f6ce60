"""Rewrite tensors that one node reads twice, or that several slices read."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto, NodeProto

from ...graphs import prune, value_types
from ...graphs.nodes import copy_node
from ...graphs.view import GraphView
from .gradient_path import gradient_nodes

__all__ = ["copy_repeated_inputs", "separate_slices"]

_PIECES = ("Slice", "Gather")


def copy_repeated_inputs(model: ModelProto, wrt: Sequence[str]) -> ModelProto:
    """Return the model with a copy of each differentiated tensor that one node reads twice.

    The builder fails if no other node reads it.
    """

    def rule(node: NodeProto) -> bool:
        seen, inputs = set[str](), []
        for name in node.input:
            inputs.append(graph.op.Identity(name) if name in seen else name)
            seen |= {name} & names
        graph.op.nodes.append(copy_node(node, inputs))
        return inputs != list(node.input)

    names, graph = set(wrt), GraphView(model, types={})
    return graph.to_model() if graph.rewrite(rule) else model


def separate_slices(model: ModelProto, outputs: Sequence[str], wrt: Sequence[str]) -> ModelProto:
    """Return the model in which slices with and without gradient read different tensors.

    The module builder merges all slices of a tensor into one Split, whose gradient is wrong if some outputs
    have none.
    """
    if sum(node.op_type in _PIECES for node in model.graph.node) < 2:
        return model
    model = prune(model)  # unused slices would also be outputs of that Split
    on_path = {n.output[0] for n in gradient_nodes(model, outputs, wrt, value_types(model))}
    pieces = [node for node in model.graph.node if node.op_type in _PIECES]
    sliced = {node.input[0] for node in pieces if node.output[0] in on_path}
    others = {n.output[0] for n in pieces if n.input[0] in sliced and n.output[0] not in on_path}
    if not others:
        return model

    def rule(node: NodeProto) -> bool:
        if node.output[0] in others:  # a copy by Max is not optimised away
            graph.op.nodes.append(copy_node(node, [graph.op.Max(node.input[0]), *node.input[1:]]))
        return node.output[0] in others

    graph = GraphView(model, types={})
    graph.rewrite(rule)
    return graph.to_model()
