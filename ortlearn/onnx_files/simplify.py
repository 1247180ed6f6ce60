"""Remove nodes without effect, and If operators whose branch is known."""

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from ..graphs import GraphBuilder, prune
from ..graphs.editing import map_node
from ..graphs.nodes import attribute, copy_node, keeps_order
from ..graphs.view import GraphView

#: Variadic operators that return a single input unchanged.
VARIADIC = ("Concat", "Max", "Mean", "Min", "Sum")


def remove_idle_nodes(model: ModelProto) -> ModelProto:
    """Return the model without nodes that return their input, such as casts to the same type."""
    graph = GraphView(model)

    def rule(node: NodeProto) -> bool | str:
        return node.output[0] not in graph.outputs and is_idle(graph, node) and node.input[0]

    return prune(graph.to_model()) if graph.rewrite(rule) else prune(model)


def is_idle(graph: GraphView, node: NodeProto) -> bool:
    """Return whether a node returns its first input."""
    if node.domain not in ("", "ai.onnx") or not node.input:
        return False
    if node.op_type == "Identity" or (node.op_type in VARIADIC and len(node.input) == 1) or keeps_order(node):
        return True
    known = graph.op.type(node.input[0]) if node.op_type in ("Cast", "Reshape") else None
    if known is None:
        return False
    if node.op_type == "Cast":
        return attribute(node, "to") == known.elem_type
    target = graph.value(node.input[1]) if len(node.input) > 1 else None
    if target is None or known.shape is None or target.shape != (len(known.shape),):
        return False
    # Reshaping (n, k, ...) to (-1, k, ...) with known k has no effect.
    sizes = tuple(target.tolist())
    return sizes[:1] == (-1,) and sizes[1:] == known.shape[1:] and 0 not in sizes


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

    # A branch may contain another If.
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
