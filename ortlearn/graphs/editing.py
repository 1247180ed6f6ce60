"""Pure functions on ``onnx.ModelProto``: each returns a new model and does not change its argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from .builder import GraphBuilder
from .nodes import copy_node, node_inputs, subgraphs
from .queries import opset_versions

__all__ = [
    "append_nodes",
    "copy_model",
    "map_names",
    "map_node",
    "name_nodes",
    "renamed_node",
    "set_initializers",
    "with_fields",
]


def copy_model(model: ModelProto) -> ModelProto:
    """Return a deep copy of a model.

    Parameters
    ----------
    model : onnx.ModelProto
        Model to copy.

    Returns
    -------
    onnx.ModelProto
        The copy.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import copy_model
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
    ...     { z = MatMul (x, w) y = Add (z, b) }''')
    >>> copy_model(model) == model, copy_model(model) is model
    (True, False)
    """
    copied = ModelProto()
    copied.CopyFrom(model)
    return copied


def set_initializers(model: ModelProto, arrays: Mapping[str, np.ndarray]) -> ModelProto:
    """Return the model with new values for some of its initializers.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    arrays : mapping of str to ndarray
        New values by name, with the same types and shapes.

    Returns
    -------
    onnx.ModelProto
        Model with the new values.

    Raises
    ------
    KeyError
        If a name is not an initializer.
    ValueError
        If a type or a shape changes.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import initializer_arrays, set_initializers
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
    ...     { z = MatMul (x, w) y = Add (z, b) }''')
    >>> import numpy as np
    >>> new = set_initializers(model, {"b": np.zeros(1, dtype=np.float32)})
    >>> initializer_arrays(new)["b"]
    array([0.], dtype=float32)
    """
    model = copy_model(model)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for name, array in arrays.items():
        tensor = tensors[name]
        old = tuple(tensor.dims), helper.tensor_dtype_to_np_dtype(tensor.data_type)
        if old != (array.shape, array.dtype):
            raise ValueError(
                f"Initializer {name!r} has shape and type {old}, got {(array.shape, array.dtype)}."
            )
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
    return model


def map_names(model: ModelProto, mapping: Mapping[str, str]) -> ModelProto:
    """Return the model with tensors renamed, in subgraphs too.

    A name that a subgraph defines itself is not changed, since it shadows the outer one.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    mapping : mapping of str to str
        New name by old name.

    Returns
    -------
    onnx.ModelProto
        Renamed model.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import map_names
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
    ...     { z = MatMul (x, w) y = Add (z, b) }''')
    >>> [tensor.name for tensor in map_names(model, {"w": "coef"}).graph.initializer]
    ['coef', 'b']
    """
    model = copy_model(model)
    _map_graph(model.graph, mapping)
    return model


def _map_graph(graph: GraphProto, mapping: Mapping[str, str]) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = mapping.get(value.name, value.name)
    for node in graph.node:
        map_node(node, mapping)


def map_node(node: NodeProto, mapping: Mapping[str, str]) -> None:
    """Rename the tensors of a node, in subgraphs too; the node changes in place."""
    node.input[:] = [mapping.get(name, name) for name in node.input]
    node.output[:] = [mapping.get(name, name) for name in node.output]
    for inner in subgraphs(node):
        own = {value.name for value in (*inner.input, *inner.initializer)}
        own |= {name for child in inner.node for name in child.output}
        _map_graph(inner, {old: new for old, new in mapping.items() if old not in own})


def renamed_node(node: NodeProto, mapping: Mapping[str, str]) -> NodeProto:
    """Return a node with tensors renamed, in subgraphs too, or the same node if none occurs in it."""
    if not mapping or mapping.keys().isdisjoint((*node_inputs(node), *node.output)):
        return node
    renamed = copy_node(node)
    map_node(renamed, mapping)
    return renamed


def name_nodes(model: ModelProto) -> ModelProto:
    """Return the model with a unique name on every node of the main graph.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model with names; unique names are kept.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import name_nodes
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
    ...     { z = MatMul (x, w) y = Add (z, b) }''')
    >>> [node.name for node in name_nodes(model).graph.node]
    ['MatMul_0', 'Add_1']
    """
    model = copy_model(model)
    seen: set[str] = set()
    for index, node in enumerate(model.graph.node):
        name = node.name or f"{node.op_type}_{index}"
        while name in seen:
            name = f"{name}_{index}"
        node.name = name
        seen.add(name)
    return model


def with_fields(
    model: ModelProto, opsets: Mapping[str, int] | None = None, **fields: Iterable[Any]
) -> ModelProto:
    """Return the model with replaced nodes, inputs, outputs, initializers or types of its main graph."""
    result = copy_model(model)
    for name, values in fields.items():
        field = getattr(result.graph, name)
        del field[:]
        field.extend(values)
    known = opset_versions(model)
    for domain, version in (opsets or {}).items():
        if domain not in known:
            result.opset_import.add(domain=domain, version=version)
    return result


def append_nodes(
    model: ModelProto,
    builder: GraphBuilder,
    *,
    inputs: Sequence[ValueInfoProto] = (),
    outputs: Sequence[ValueInfoProto] | None = None,
    first: bool = False,
) -> ModelProto:
    """Return the model with the nodes and constants of a builder added to its main graph.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    builder : GraphBuilder
        Builder with the nodes and constants to add.
    inputs : sequence of onnx.ValueInfoProto, default=()
        Inputs to add after the others.
    outputs : sequence of onnx.ValueInfoProto, default=None
        Outputs of the result; the model's own by default.
    first : bool, default=False
        Whether the new nodes precede those of the model.

    Returns
    -------
    onnx.ModelProto
        Model with the additional nodes.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import GraphBuilder, append_nodes, graph_names
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
    ...     { z = MatMul (x, w) y = Add (z, b) }''')
    >>> op = GraphBuilder(existing_names=graph_names(model.graph))
    >>> output = op.node("Neg", "y", outputs=["minus_y"])
    >>> [node.op_type for node in append_nodes(model, op).graph.node]
    ['MatMul', 'Add', 'Neg']
    """
    graph = model.graph
    nodes = [*builder.nodes, *graph.node] if first else [*graph.node, *builder.nodes]
    return with_fields(
        model,
        builder.opsets,
        node=nodes,
        initializer=[*graph.initializer, *builder.initializers],
        input=[*graph.input, *inputs],
        output=graph.output if outputs is None else outputs,
    )
