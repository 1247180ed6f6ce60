"""Pure functions on ``onnx.ModelProto``: every one returns a new model and leaves its argument alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
    shape_inference,
)

from .builder import GraphBuilder, TensorType

__all__ = [
    "append_nodes",
    "copy_model",
    "extract_model",
    "graph_names",
    "initializer_arrays",
    "make_initializers_of",
    "make_inputs_of",
    "make_value_info",
    "map_names",
    "name_nodes",
    "node_inputs",
    "opset_versions",
    "prune",
    "set_initializers",
    "subgraphs",
    "value_types",
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
    """
    copied = ModelProto()
    copied.CopyFrom(model)
    return copied


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs a node holds in its attributes (branches of If, bodies of Loop and Scan)."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def node_inputs(node: NodeProto) -> set[str]:
    """Return every name a node reads, those its subgraphs take from outside included."""
    names = {name for name in node.input if name}
    for graph in subgraphs(node):
        inner = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        inner |= {name for child in graph.node for name in child.output}
        read = set().union(*(node_inputs(child) for child in graph.node), {o.name for o in graph.output})
        names |= read - inner
    return names


def graph_names(graph: GraphProto) -> set[str]:
    """Return every name of a graph: tensors, nodes and subgraphs included."""
    names = {value.name for value in (*graph.input, *graph.output)}
    names |= {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        names.update(node.input)
        names.update(node.output)
        names.add(node.name)
        for inner in subgraphs(node):
            names |= graph_names(inner)
    names.discard("")
    return names


def opset_versions(model: ModelProto) -> dict[str, int]:
    """Return the version of each operator set a model imports ("" is the default domain)."""
    return {("" if i.domain == "ai.onnx" else i.domain): i.version for i in model.opset_import}


def initializer_arrays(model: ModelProto, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """Return the initializers of the main graph as numpy arrays, in the graph's order."""
    wanted = None if names is None else set(names)
    return {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if wanted is None or tensor.name in wanted
    }


def set_initializers(model: ModelProto, arrays: Mapping[str, np.ndarray]) -> ModelProto:
    """Return the model with new values for some of its initializers.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    arrays : mapping of str to ndarray
        New values by name. Types and shapes must be the old ones.

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


def make_value_info(name: str, known: TensorType | None) -> ValueInfoProto:
    """Return a value info from what is known of a tensor."""
    if known is None:
        return helper.make_empty_tensor_value_info(name)
    shape = None if known.shape is None else list(known.shape)
    return helper.make_tensor_value_info(name, known.elem_type, shape)


def _tensor_type(value: ValueInfoProto) -> TensorType | None:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or tensor.elem_type == TensorProto.UNDEFINED:
        return None
    if not tensor.HasField("shape"):
        return TensorType(tensor.elem_type)
    dims = [
        d.dim_value if d.HasField("dim_value") else (d.dim_param or None)  # None: nothing is known
        for d in tensor.shape.dim
    ]
    return TensorType(tensor.elem_type, tuple(dims))


def value_types(model: ModelProto, infer: bool = True) -> dict[str, TensorType]:
    """Return what is known of the tensors of the main graph.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    infer : bool, default=True
        Whether to run onnx's shape inference (with data propagation) first.

    Returns
    -------
    dict of str to TensorType
        Inputs, outputs, initializers and inner values, where something is known.
    """
    if infer:
        model = shape_inference.infer_shapes(model, data_prop=True)
    graph = model.graph
    types = {tensor.name: TensorType(tensor.data_type, tuple(tensor.dims)) for tensor in graph.initializer}
    for value in (*graph.output, *graph.value_info, *graph.input):
        known = _tensor_type(value)
        if known is not None:
            types[value.name] = known
    return types


def map_names(model: ModelProto, mapping: Mapping[str, str]) -> ModelProto:
    """Return the model with tensors renamed, in subgraphs too.

    A subgraph that defines a name of its own keeps it (it shadows the outer one).

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
    """
    model = copy_model(model)
    _map_graph(model.graph, dict(mapping))
    return model


def _map_graph(graph: GraphProto, mapping: dict[str, str]) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = mapping.get(value.name, value.name)
    for node in graph.node:
        node.input[:] = [mapping.get(name, name) for name in node.input]
        node.output[:] = [mapping.get(name, name) for name in node.output]
        for inner in subgraphs(node):
            own = {value.name for value in (*inner.input, *inner.initializer)}
            own |= {name for child in inner.node for name in child.output}
            _map_graph(inner, {old: new for old, new in mapping.items() if old not in own})


def name_nodes(model: ModelProto) -> ModelProto:
    """Return the model with a unique name on every node of the main graph."""
    model = copy_model(model)
    seen: set[str] = set()
    for index, node in enumerate(model.graph.node):
        name = node.name or f"{node.op_type}_{index}"
        while name in seen:
            name = f"{name}_{index}"
        node.name = name
        seen.add(name)
    return model


def prune(model: ModelProto, keep: Callable[[NodeProto], bool] | None = None) -> ModelProto:
    """Return the model without the nodes and initializers no output needs.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    keep : callable, default=None
        Nodes for which it returns True stay, needed or not.

    Returns
    -------
    onnx.ModelProto
        Smaller model.
    """
    model = copy_model(model)
    graph = model.graph
    needed = {value.name for value in graph.output}
    nodes = []
    for node in reversed(graph.node):
        if needed.intersection(node.output) or (keep is not None and keep(node)):
            nodes.append(node)
            needed |= node_inputs(node)
    _replace(graph.node, nodes[::-1])
    dropped = {tensor.name for tensor in graph.initializer} - needed
    _replace(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in needed])
    # An input that only named a default value would become one that must be given.
    _replace(graph.input, [value for value in graph.input if value.name not in dropped])
    return model


def _replace(field, values: Sequence) -> None:
    values = [type(value).FromString(value.SerializeToString()) for value in values]
    del field[:]
    field.extend(values)


def extract_model(
    model: ModelProto, outputs: Sequence[str], inputs: Sequence[str] | None = None
) -> ModelProto:
    """Return the part of a model that computes some tensors.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    outputs : sequence of str
        Tensors of the main graph that become the outputs.
    inputs : sequence of str, default=None
        Tensors where the part begins; the model's own inputs by default. Inputs
        nothing needs are left out.

    Returns
    -------
    onnx.ModelProto
        The part.

    Raises
    ------
    KeyError
        If an output is not a tensor of the graph.
    """
    types = value_types(model)
    known = graph_names(model.graph)
    missing = [name for name in outputs if name not in known]
    if missing:
        raise KeyError(f"{missing} are not tensors of the graph.")
    starts = [value.name for value in model.graph.input] if inputs is None else list(inputs)
    part = copy_model(model)
    cut = [node for node in part.graph.node if not set(node.output) <= {*starts, ""}]
    _replace(part.graph.node, cut)
    _replace(part.graph.output, [make_value_info(name, types.get(name)) for name in outputs])
    part = prune(part)
    needed = set().union(*(node_inputs(node) for node in part.graph.node), set(outputs))
    declared = {value.name: value for value in model.graph.input}
    infos = [
        declared[name] if name in declared else make_value_info(name, types.get(name))
        for name in starts
        if name in needed
    ]
    _replace(part.graph.input, infos)
    if inputs is not None:
        _replace(part.graph.initializer, [t for t in part.graph.initializer if t.name not in set(inputs)])
    del part.graph.value_info[:]
    return part


def make_inputs_of(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """Return the model with some initializers turned into inputs, after the others."""
    model = copy_model(model)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    declared = {value.name for value in model.graph.input}
    for name in names:
        if name not in declared:
            tensor = tensors[name]
            model.graph.input.append(helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))
    _replace(model.graph.initializer, [t for t in model.graph.initializer if t.name not in set(names)])
    return model


def make_initializers_of(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """Return the model with some inputs turned into initializers of zeros, in the order given."""
    model = copy_model(model)
    values = {value.name: value.type.tensor_type for value in model.graph.input}
    for name in names:
        shape = [dim.dim_value for dim in values[name].shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(values[name].elem_type)
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(shape, dtype=dtype), name))
    _replace(model.graph.input, [value for value in model.graph.input if value.name not in set(names)])
    return model


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
        What to add.
    inputs : sequence of onnx.ValueInfoProto, default=()
        Inputs to add after the others.
    outputs : sequence of onnx.ValueInfoProto, default=None
        Outputs of the result; the model's own by default.
    first : bool, default=False
        Whether the new nodes go before the model's own.

    Returns
    -------
    onnx.ModelProto
        Longer model.
    """
    model = copy_model(model)
    graph = model.graph
    own = list(graph.node)
    _replace(graph.node, [*builder.nodes, *own] if first else [*own, *builder.nodes])
    graph.initializer.extend(builder.initializers)
    graph.input.extend(inputs)
    if outputs is not None:
        _replace(graph.output, outputs)
    versions = opset_versions(model)
    for domain, version in builder.opsets.items():
        if domain not in versions:
            model.opset_import.append(helper.make_opsetid(domain, version))
    return model
