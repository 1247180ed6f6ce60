"""Parts and inputs of a graph: pure functions that return a new model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from .editing import renamed_node, with_fields
from .nodes import needed_nodes, node_inputs
from .queries import graph_names, make_value_info, value_types

__all__ = ["extract_model", "make_initializers_of", "make_inputs_of", "prune"]


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
    model: ModelProto, outputs: Sequence[str], inputs: Sequence[str] | None = None
) -> ModelProto:
    """Return the part of a model from its inputs, or the tensors ``inputs``, to the tensors ``outputs``."""
    known = graph_names(model.graph)
    missing = [name for name in outputs if name not in known]
    if missing:
        raise KeyError(f"{missing} are not tensors of the graph.")
    starts = [value.name for value in model.graph.input] if inputs is None else list(inputs)
    types = value_types(model, names={*outputs, *starts})
    nodes = [  # an output that is an input of the part; the node is kept for its other outputs
        renamed_node(node, {name: f"{name}_not_used" for name in node.output if name in starts})
        for node in model.graph.node
        if not set(node.output) <= {*starts, ""}
    ]
    nodes = needed_nodes(nodes, outputs)
    needed = set(outputs).union(*map(node_inputs, nodes))
    given = set() if inputs is None else set(inputs)
    declared = {value.name: value for value in model.graph.input}
    read = [name for name in starts if name in needed]
    return with_fields(
        model,
        node=nodes,
        initializer=[t for t in model.graph.initializer if t.name in needed - given],
        input=[declared.get(name) or make_value_info(name, types.get(name)) for name in read],
        output=[make_value_info(name, types.get(name)) for name in outputs],
        value_info=(),
    )


def make_inputs_of(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """Return the model with some initializers turned into inputs, after the others.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    names : sequence of str
        Initializers.

    Returns
    -------
    onnx.ModelProto
        Model with more inputs.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import make_inputs_of
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
    ...     { z = MatMul (x, w) y = Add (z, b) }''')
    >>> [value.name for value in make_inputs_of(model, ["b", "w"]).graph.input]
    ['x', 'b', 'w']
    """
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    declared = {value.name for value in graph.input}
    new = [tensors[name] for name in names if name not in declared]
    infos = [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in new]
    kept = [tensor for tensor in graph.initializer if tensor.name not in names]
    return with_fields(model, input=[*graph.input, *infos], initializer=kept)


def make_initializers_of(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """Return the model with some inputs turned into initializers of zeros, in the order given."""
    graph = model.graph
    values = {value.name: value.type.tensor_type for value in graph.input}
    tensors = list(graph.initializer)
    for name in names:
        shape = [dim.dim_value for dim in values[name].shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(values[name].elem_type)
        tensors.append(numpy_helper.from_array(np.zeros(shape, dtype=dtype), name))
    inputs = [value for value in graph.input if value.name not in names]
    return with_fields(model, input=inputs, initializer=tensors)
