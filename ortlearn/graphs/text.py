"""Text view of a graph, short enough to read."""

from __future__ import annotations

import math

from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, helper, printer

from .editing import copy_model
from .nodes import subgraphs

__all__ = ["graph_to_text"]


def graph_to_text(model: ModelProto, max_elements: int = 8) -> str:
    """Return the graph of a model in onnx's textual syntax, without the values of large constants.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    max_elements : int, default=8
        Initializers and attributes with more elements are shown by type and shape only.

    Returns
    -------
    str
        Inputs and outputs, initializers, and one line for each node.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import graph_to_text
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul (x, w) }''')
    >>> print(graph_to_text(model, max_elements=1))
    g (float[N,2] x) => (float[N,1] y)
       <float[2,1] w>
    {
       y = MatMul (x, w)
    }
    """
    graph = copy_model(model).graph
    _shorten(graph, max_elements)
    lines = printer.to_text(graph).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def _shorten(graph: GraphProto, max_elements: int) -> None:
    """Remove names of nodes, known types of inner values, and the values of large initializers."""
    del graph.value_info[:]
    for tensor in [t for t in graph.initializer if math.prod(t.dims) > max_elements]:
        graph.value_info.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        graph.initializer.remove(tensor)
    for node in graph.node:
        node.ClearField("name")
        for attribute in node.attribute:
            _shorten_attribute(attribute, max_elements)
        for inner in subgraphs(node):
            _shorten(inner, max_elements)


def _shorten_attribute(attribute: AttributeProto, max_elements: int) -> None:
    """Replace a large constant by a text."""
    if attribute.type == AttributeProto.TENSOR and math.prod(attribute.t.dims) > max_elements:
        dtype = TensorProto.DataType.Name(attribute.t.data_type).lower()
        text = f"{dtype}[{','.join(map(str, attribute.t.dims))}]"
    else:
        lists = (attribute.floats, attribute.ints, attribute.strings)
        size = max(map(len, lists))
        if size <= max_elements:
            return
        text = f"{AttributeProto.AttributeType.Name(attribute.type).lower()}[{size}]"
    attribute.CopyFrom(helper.make_attribute(attribute.name, text))
