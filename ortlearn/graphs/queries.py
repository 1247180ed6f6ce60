"""Functions of graphs: names, types and constants."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    ValueInfoProto,
    helper,
)

from .builder import TensorType
from .external_tensors import tensor_array
from .nodes import subgraphs

__all__ = [
    "copy_value",
    "graph_names",
    "initializer_arrays",
    "make_value_info",
    "opset_versions",
    "renamed_value",
]


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
    """Return the version of each operator set a model imports ("" is the default domain).

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    dict of str to int
        Version by domain.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import opset_versions
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
    ...     { z = MatMul (x, w) y = Add (z, b) }''')
    >>> opset_versions(model)
    {'': 18}
    """
    return {("" if i.domain == "ai.onnx" else i.domain): i.version for i in model.opset_import}


def initializer_arrays(model: ModelProto, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """Return the initializers of the main graph as numpy arrays, in the graph's order."""
    wanted = None if names is None else set(names)
    return {
        tensor.name: tensor_array(tensor)
        for tensor in model.graph.initializer
        if wanted is None or tensor.name in wanted
    }


def make_value_info(name: str, known: TensorType | None) -> ValueInfoProto:
    """Return a value info of a tensor.

    Parameters
    ----------
    name : str
        Name of the tensor.
    known : TensorType or None
        Type and shape; None if unknown.

    Returns
    -------
    onnx.ValueInfoProto
        Value info.

    Examples
    --------
    >>> from ortlearn.graphs import TensorType, make_value_info
    >>> make_value_info("x", TensorType(1, ("N", 3))).type.tensor_type.shape.dim[1].dim_value
    3
    """
    if known is None:
        return helper.make_empty_tensor_value_info(name)
    shape = None if known.shape is None else list(known.shape)
    return helper.make_tensor_value_info(name, known.elem_type, shape)


def copy_value(value: ValueInfoProto) -> ValueInfoProto:
    """Return a copy, which stays valid when the graph is changed."""
    return ValueInfoProto.FromString(value.SerializeToString())


def renamed_value(value: ValueInfoProto, name: str) -> ValueInfoProto:
    """Return a copy with another name."""
    copied = copy_value(value)
    copied.name = name
    return copied
