"""ONNX graphs as data: a builder, pure editing functions, and a text view.

``NodeRule`` is the type of the rules of :func:`replace_nodes`.
"""

from .builder import GraphBuilder, TensorType
from .drawing import draw_graph, graph_to_dot
from .editing import (
    append_nodes,
    copy_model,
    make_initializers_of,
    make_inputs_of,
    map_names,
    name_nodes,
    set_initializers,
)
from .functions import inline_functions
from .loop_limits import with_loop_limits
from .nodes import count_nodes, node_inputs, subgraphs
from .parts import extract_model, prune
from .queries import graph_names, initializer_arrays, make_value_info, opset_versions
from .text import graph_to_text
from .types import value_types
from .view import NodeRule, replace_nodes

__all__ = [
    "GraphBuilder",
    "NodeRule",
    "TensorType",
    "append_nodes",
    "copy_model",
    "count_nodes",
    "draw_graph",
    "extract_model",
    "graph_names",
    "graph_to_dot",
    "graph_to_text",
    "initializer_arrays",
    "inline_functions",
    "make_initializers_of",
    "make_inputs_of",
    "make_value_info",
    "map_names",
    "name_nodes",
    "node_inputs",
    "opset_versions",
    "prune",
    "replace_nodes",
    "set_initializers",
    "subgraphs",
    "value_types",
    "with_loop_limits",
]
