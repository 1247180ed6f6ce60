"""Replace If operators by branches that are always taken."""

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from ..graphs import GraphBuilder
from ..graphs.editing import map_node
from ..graphs.nodes import attribute, copy_node
from ..graphs.view import GraphView


def is_choice(node: NodeProto) -> bool:
    """Return whether a node is an If."""
    return node.op_type == "If" and node.domain in ("", "ai.onnx") and bool(node.input)


def with_chosen_branches(model: ModelProto, conditions: Mapping[str, bool] | None = None) -> ModelProto:
    """Return a model without If operators whose condition is constant or given."""
    graph, known = GraphView(model, types={}), conditions or {}

    def rule(node: NodeProto) -> bool:
        value = graph.value(node.input[0]) if is_choice(node) else None
        chosen = known.get(node.input[0]) if is_choice(node) else None
        if value is not None and value.size == 1:
            chosen = bool(value.item())
        if chosen is not None:
            _inline(node, attribute(node, "then_branch" if chosen else "else_branch"), graph.op)
        return chosen is not None

    # A branch may have held another If.
    return with_chosen_branches(graph.to_model(), conditions) if graph.rewrite(rule) else model


def _inline(node: NodeProto, branch: GraphProto, op: GraphBuilder) -> None:
    """Append the nodes and initializers of a branch under new names."""
    made = [name for child in branch.node for name in child.output if name]
    mapping = {name: op.unique(name) for name in (*made, *(t.name for t in branch.initializer))}
    for tensor in branch.initializer:
        op.initializers.append(TensorProto())
        op.initializers[-1].CopyFrom(tensor)
        op.initializers[-1].name = mapping[tensor.name]
    for child in map(copy_node, branch.node):
        map_node(child, mapping)
        op.nodes.append(child)
    for value, output in zip(branch.output, node.output, strict=True):
        if output:
            op.Identity(mapping.get(value.name, value.name), outputs=[output])
