"""Branches that are always taken, in place of the If that chooses them."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from ..graphs import GraphBuilder, graph_names
from ..graphs.editing import map_node, with_fields
from ..graphs.nodes import attribute, copy_node
from ..graphs.view import GraphView


def chosen_branch(node: NodeProto) -> bool:
    """Return whether a node chooses between two branches."""
    return node.op_type == "If" and node.domain in ("", "ai.onnx") and bool(node.input)


def with_chosen_branches(model: ModelProto, conditions: Mapping[str, bool] | None = None) -> ModelProto:
    """Return a model with the nodes of a branch in place of every If whose condition is known.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    conditions : mapping of str to bool, default=None
        What conditions are known to be, besides constants.

    Returns
    -------
    onnx.ModelProto
        Model that computes the same; the one given where no condition is known.
    """
    view, known = GraphView(model), dict(conditions or {})
    for node in model.graph.node:
        value = view.value(node.input[0]) if chosen_branch(node) else None
        if value is not None and value.size == 1:
            known[node.input[0]] = bool(value.item())
    if not any(chosen_branch(node) and node.input[0] in known for node in model.graph.node):
        return model
    op = GraphBuilder(existing_names=graph_names(model.graph))
    nodes: list[NodeProto] = []
    initializers = list(model.graph.initializer)
    for node in model.graph.node:
        if not chosen_branch(node) or node.input[0] not in known:
            nodes.append(node)
            continue
        branch = attribute(node, "then_branch" if known[node.input[0]] else "else_branch")
        nodes.extend(_inlined(node, branch, op, initializers))
    # A branch may have held another If.
    return with_chosen_branches(with_fields(model, node=nodes, initializer=initializers), conditions)


def _inlined(
    node: NodeProto, branch: GraphProto, op: GraphBuilder, initializers: list[TensorProto]
) -> list[NodeProto]:
    """Return the nodes of a branch under names of their own, and add its initializers."""
    made = [name for child in branch.node for name in child.output if name]
    mapping = {name: op.unique(name) for name in (*made, *(t.name for t in branch.initializer))}
    for tensor in branch.initializer:
        initializers.append(TensorProto())
        initializers[-1].CopyFrom(tensor)
        initializers[-1].name = mapping[tensor.name]
    nodes = [copy_node(child) for child in branch.node]
    for child in nodes:
        map_node(child, mapping)
    for value, output in zip(branch.output, node.output, strict=True):
        if output:
            op.Identity(mapping.get(value.name, value.name), outputs=[output])
            nodes.append(op.nodes.pop())
    return nodes
