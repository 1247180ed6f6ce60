"""Tensors that one node reads twice, or several slices read, in forms that the builder gets right."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto, NodeProto

from ...graphs import GraphBuilder, copy_model, graph_names, opset_versions, prune, value_types
from .gradient_path import gradient_nodes

__all__ = ["copy_repeated_inputs", "separate_slices"]

_PIECES = ("Slice", "Gather")


def copy_repeated_inputs(model: ModelProto, wrt: Sequence[str]) -> ModelProto:
    """Return the model with a copy of what is differentiated to where one node reads it twice.

    The builder fails where nothing else reads it.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph.
    wrt : sequence of str
        What is differentiated to.

    Returns
    -------
    onnx.ModelProto
        Graph; the one given where nothing is read twice.
    """
    names = set(wrt)
    repeated = [
        {name for name in names.intersection(node.input) if list(node.input).count(name) > 1}
        for node in model.graph.node
    ]
    if not any(repeated):
        return model
    op = GraphBuilder(existing_names=graph_names(model.graph))
    result = copy_model(model)
    del result.graph.node[:]
    for node, twice in zip(model.graph.node, repeated, strict=True):
        start = len(op.nodes)
        copied = _with_copies(node, twice, op)
        result.graph.node.extend([*op.nodes[start:], copied])
    return result


def _with_copies(node: NodeProto, names: set[str], op: GraphBuilder) -> NodeProto:
    copied = NodeProto.FromString(node.SerializeToString())
    for name in names:
        for position in [i for i, other in enumerate(node.input) if other == name][1:]:
            copied.input[position] = op.Identity(name)
    return copied


def separate_slices(model: ModelProto, outputs: Sequence[str], wrt: Sequence[str]) -> ModelProto:
    """Return the model whose slices without gradient are not those of a tensor sliced with gradient.

    The module builder makes one Split of all slices of a tensor, and a Split of which some outputs
    have no gradient gets a wrong one.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph.
    outputs : sequence of str
        What is differentiated.
    wrt : sequence of str
        With respect to what.

    Returns
    -------
    onnx.ModelProto
        Graph, without nodes that no output needs.
    """
    if sum(node.op_type in _PIECES for node in model.graph.node) < 2:
        return model
    model = prune(model)  # slices that nobody reads would be outputs of that Split too
    on_path = {n.output[0] for n in gradient_nodes(model, outputs, wrt, value_types(model))}
    pieces = [node for node in model.graph.node if node.op_type in _PIECES]
    sliced = {node.input[0] for node in pieces if node.output[0] in on_path}
    others = {n.output[0] for n in pieces if n.input[0] in sliced and n.output[0] not in on_path}
    if not others:
        return model
    op = GraphBuilder(opset_versions(model)[""], existing_names=graph_names(model.graph))
    result = copy_model(model)
    del result.graph.node[:]
    for node in model.graph.node:
        start = len(op.nodes)
        copied = NodeProto.FromString(node.SerializeToString())
        if node.output[0] in others:
            copied.input[0] = op.Max(node.input[0])  # a copy that is not optimized away
        result.graph.node.extend([*op.nodes[start:], copied])
    return result
