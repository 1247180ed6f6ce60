"""Parts of a graph, and what goes into it: pure functions that return a new model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from .editing import copy_model, replace_field
from .queries import graph_names, make_value_info, node_inputs, value_types

__all__ = ["extract_model", "make_initializers_of", "make_inputs_of", "prune"]


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

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import extract_model, prune
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
    ...     { z = MatMul (x, w) y = Add (z, b) }''')
    >>> [tensor.name for tensor in prune(extract_model(model, ["z"])).graph.initializer]
    ['w']
    """
    model = copy_model(model)
    graph = model.graph
    needed = {value.name for value in graph.output}
    nodes = []
    for node in reversed(graph.node):
        if needed.intersection(node.output) or (keep is not None and keep(node)):
            nodes.append(node)
            needed |= node_inputs(node)
    replace_field(graph.node, nodes[::-1])
    dropped = {tensor.name for tensor in graph.initializer} - needed
    replace_field(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in needed])
    # An input that only named a default value would become one that must be given.
    replace_field(graph.input, [value for value in graph.input if value.name not in dropped])
    return model


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

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import extract_model
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
    ...     { z = MatMul (x, w) y = Add (z, b) }''')
    >>> part = extract_model(model, ["y"], ["z"])
    >>> [node.op_type for node in part.graph.node], part.graph.input[0].name
    (['Add'], 'z')
    """
    types = value_types(model)
    known = graph_names(model.graph)
    missing = [name for name in outputs if name not in known]
    if missing:
        raise KeyError(f"{missing} are not tensors of the graph.")
    starts = [value.name for value in model.graph.input] if inputs is None else list(inputs)
    part = copy_model(model)
    cut = [node for node in part.graph.node if not set(node.output) <= {*starts, ""}]
    for node in cut:  # an output that is given comes from outside, the node is kept for its others
        node.output[:] = [f"{name}_not_used" if name in starts else name for name in node.output]
    replace_field(part.graph.node, cut)
    replace_field(part.graph.output, [make_value_info(name, types.get(name)) for name in outputs])
    part = prune(part)
    needed = set().union(*(node_inputs(node) for node in part.graph.node), set(outputs))
    declared = {value.name: value for value in model.graph.input}
    infos = [
        declared[name] if name in declared else make_value_info(name, types.get(name))
        for name in starts
        if name in needed
    ]
    replace_field(part.graph.input, infos)
    if inputs is not None:
        replace_field(
            part.graph.initializer, [t for t in part.graph.initializer if t.name not in set(inputs)]
        )
    del part.graph.value_info[:]
    return part


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
    model = copy_model(model)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    declared = {value.name for value in model.graph.input}
    for name in names:
        if name not in declared:
            tensor = tensors[name]
            model.graph.input.append(helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))
    replace_field(model.graph.initializer, [t for t in model.graph.initializer if t.name not in set(names)])
    return model


def make_initializers_of(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """Return the model with some inputs turned into initializers of zeros, in the order given.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    names : sequence of str
        Inputs, their shapes known.

    Returns
    -------
    onnx.ModelProto
        Model with fewer inputs.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import make_initializers_of, make_inputs_of
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
    ...     { z = MatMul (x, w) y = Add (z, b) }''')
    >>> open_model = make_inputs_of(model, ["w", "b"])
    >>> [tensor.name for tensor in make_initializers_of(open_model, ["b", "w"]).graph.initializer]
    ['b', 'w']
    """
    model = copy_model(model)
    values = {value.name: value.type.tensor_type for value in model.graph.input}
    for name in names:
        shape = [dim.dim_value for dim in values[name].shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(values[name].elem_type)
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(shape, dtype=dtype), name))
    replace_field(model.graph.input, [value for value in model.graph.input if value.name not in set(names)])
    return model
