"""Remove nodes that do nothing, which converters leave behind."""

from __future__ import annotations

from collections.abc import Callable

from onnx import ModelProto, NodeProto, helper

from ..graphs import TensorType, initializer_arrays, node_inputs, prune, value_types

__all__ = ["is_idle", "remove_idle_nodes", "skip_idle_nodes"]

#: Operators of any number of inputs that do nothing to a single one.
OF_MANY = ("Concat", "Max", "Mean", "Min", "Sum")


def remove_idle_nodes(model: ModelProto) -> ModelProto:
    """Return the model without casts to the same type, identities, and reshapes to the same shape.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model with the same outputs; a node that gives an output stays.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.onnx_files.simplify import remove_idle_nodes
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,2] y) { z = Identity (x) y = Neg (z) }''')
    >>> [node.op_type for node in remove_idle_nodes(model).graph.node]
    ['Neg']
    """
    types = value_types(model)
    shapes = _constant_shapes(model)
    outputs = {value.name for value in model.graph.output}
    subgraph_reads = {
        name for node in model.graph.node for name in node_inputs(node) - {n for n in node.input if n}
    }
    replaced: dict[str, str] = {}
    nodes: list[NodeProto] = []
    for node in model.graph.node:
        node = NodeProto.FromString(node.SerializeToString())
        node.input[:] = [replaced.get(name, name) for name in node.input]
        kept = outputs | subgraph_reads
        if len(node.output) == 1 and node.output[0] not in kept and is_idle(node, types.get, shapes):
            replaced[node.output[0]] = node.input[0]
        else:
            nodes.append(node)
    result = prune(model)
    del result.graph.node[:]
    result.graph.node.extend(nodes)
    return prune(result)


def skip_idle_nodes(model: ModelProto, name: str, types: dict[str, TensorType]) -> str:
    """Return the tensor that a tensor equals, before the nodes that do nothing."""
    shapes = _constant_shapes(model)
    producers = {output: node for node in model.graph.node for output in node.output}
    while name in producers and is_idle(producers[name], types.get, shapes):
        name = producers[name].input[0]
    return name


def _constant_shapes(model: ModelProto) -> dict[str, tuple[int, ...]]:
    defaults = {value.name for value in model.graph.input}
    arrays = {name: a for name, a in initializer_arrays(model).items() if name not in defaults}
    return {name: tuple(a.tolist()) for name, a in arrays.items() if a.dtype == "int64" and a.ndim == 1}


def is_idle(
    node: NodeProto, type_of: Callable[[str], TensorType | None], shapes: dict[str, tuple[int, ...]]
) -> bool:
    """Tell whether a node gives what it is given."""
    if node.domain not in ("", "ai.onnx") or not node.input:
        return False
    if node.op_type == "Identity" or (node.op_type in OF_MANY and len(node.input) == 1):
        return True
    known = type_of(node.input[0])
    if known is None:
        return False
    if node.op_type == "Cast":
        return helper.get_node_attr_value(node, "to") == known.elem_type
    if node.op_type == "Reshape" and known.shape is not None and len(node.input) > 1:
        target = shapes.get(node.input[1])
        # (-1, k, ...) of a tensor (n, k, ...) with every k known is the tensor itself.
        return (
            target is not None
            and len(target) == len(known.shape)
            and target[:1] == (-1,)
            and target[1:] == known.shape[1:]
            and 0 not in target
        )
    return False
