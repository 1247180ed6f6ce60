"""Parts of a graph: pure functions that return a new model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import ModelProto, NodeProto

from .builder import TensorType
from .editing import renamed_node, with_fields
from .nodes import needed_nodes, node_inputs
from .queries import make_value_info
from .types import value_types

__all__ = ["extract_model", "prune"]


def prune(model: ModelProto, keep: Callable[[NodeProto], bool] | None = None) -> ModelProto:
    """Return the model without nodes and initializers that no output needs, unless ``keep(node)`` is true."""
    graph = model.graph
    needed, nodes = {value.name for value in graph.output}, []
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output) or (keep is not None and keep(node)):
            nodes.append(node)
            needed |= node_inputs(node)
    # Without its default value, an input would become required.
    dropped = {tensor.name for tensor in graph.initializer} - needed
    return with_fields(
        model,
        node=nodes[::-1],
        initializer=[tensor for tensor in graph.initializer if tensor.name in needed],
        input=[value for value in graph.input if value.name not in dropped],
    )


def extract_model(
    model: ModelProto,
    outputs: Sequence[str],
    inputs: Sequence[str] | None = None,
    declared: Mapping[str, TensorType] | None = None,
) -> ModelProto:
    """Return the part of a model from its inputs, or the tensors ``inputs``, to the tensors ``outputs``."""
    # ``declared`` are types that onnx does not infer, after operators of other domains.
    graph = model.graph
    known = {value.name for value in (*graph.input, *graph.initializer)}.union(
        *(n.output for n in graph.node)
    )
    if missing := [name for name in outputs if name not in known]:
        raise KeyError(f"{missing} are not tensors of the graph.")
    starts = [value.name for value in model.graph.input] if inputs is None else list(inputs)
    types = {**(declared or {}), **value_types(model, names={*outputs, *starts})}
    nodes = [  # an output that is an input of the part; the node is kept for its other outputs
        renamed_node(node, {name: f"{name}_not_used" for name in node.output if name in starts})
        for node in model.graph.node
        if not set(node.output) <= {*starts, ""}
    ]
    nodes = needed_nodes(nodes, outputs)
    needed = set(outputs).union(*map(node_inputs, nodes))
    given = set() if inputs is None else set(inputs)
    own = {value.name: value for value in model.graph.input}
    read = [name for name in starts if name in needed]
    return with_fields(
        model,
        node=nodes,
        initializer=[t for t in model.graph.initializer if t.name in needed - given],
        input=[own.get(name) or make_value_info(name, types.get(name)) for name in read],
        output=[make_value_info(name, types.get(name)) for name in outputs],
        value_info=(),
    )
