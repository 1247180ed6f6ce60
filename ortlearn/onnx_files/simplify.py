"""Remove nodes without effect, which converters write."""

from onnx import ModelProto, NodeProto

from ..graphs import prune
from ..graphs.nodes import attribute
from ..graphs.view import GraphView

#: Operators of any number of inputs that have no effect on a single one.
OF_MANY = ("Concat", "Max", "Mean", "Min", "Sum")


def remove_idle_nodes(model: ModelProto) -> ModelProto:
    """Return the model without idle nodes: identities, casts to the same type, reshapes to the same shape."""
    graph = GraphView(model)

    def rule(node: NodeProto) -> bool | str:
        return node.output[0] not in graph.outputs and is_idle(graph, node) and node.input[0]

    return prune(graph.to_model()) if graph.rewrite(rule) else prune(model)


def is_idle(graph: GraphView, node: NodeProto) -> bool:
    """Return whether a node returns its input."""
    if node.domain not in ("", "ai.onnx") or not node.input:
        return False
    if node.op_type == "Identity" or (node.op_type in OF_MANY and len(node.input) == 1):
        return True
    known = graph.op.type(node.input[0]) if node.op_type in ("Cast", "Reshape") else None
    if known is None:
        return False
    if node.op_type == "Cast":
        return attribute(node, "to") == known.elem_type
    target = graph.value(node.input[1]) if len(node.input) > 1 else None
    if target is None or known.shape is None or target.shape != (len(known.shape),):
        return False
    # (-1, k, ...) of a tensor (n, k, ...) with every k known is the tensor itself.
    sizes = tuple(target.tolist())
    return sizes[:1] == (-1,) and sizes[1:] == known.shape[1:] and 0 not in sizes
