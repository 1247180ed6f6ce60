"""Move the weights of a model into initializers of the main graph."""

from __future__ import annotations

from collections.abc import Callable

from onnx import ModelProto, TensorProto, helper, numpy_helper

from ..graphs import GraphBuilder, copy_model, inline_functions
from ..graphs.editing import map_node
from .integer_weights import add_rounding
from .weight_locations import Part, defined_names, output_names, weight_locations

__all__ = ["with_named_weights"]


def with_named_weights(model: ModelProto, integers: bool = False) -> ModelProto:
    """Return a model without functions, with the weights of ``weight_locations`` as main initializers."""
    # With integers=True, quantised weights become floats that the graph rounds.
    result = copy_model(model)
    parts = [result.graph, *result.functions]
    unique = GraphBuilder(existing_names={name for part in parts for name in defined_names(part)}).unique
    for name, location in weight_locations(result).items():
        graph, kind = location.graph, location.quantisation
        is_initializer = isinstance(location.holder, TensorProto)
        if kind is not None and not integers:
            continue
        if kind is None and graph is result.graph and is_initializer:
            continue
        array = location.value().astype(helper.tensor_dtype_to_np_dtype(location.elem_type))
        inner = location.inner_name
        if kind is not None:
            add_rounding(graph, inner, name, kind, location.tensor, unique)
        (graph.initializer if is_initializer else graph.node).remove(location.holder)
        result.graph.initializer.append(numpy_helper.from_array(array, name))
        if kind is None:
            _rename(graph, inner, name, graph is not result.graph, unique)
    return inline_functions(result)  # does not rename tensors that are defined outside the function


def _rename(graph: Part, inner: str, name: str, is_inner: bool, unique: Callable[[str], str]) -> None:
    """Rename a constant that became a main initializer."""
    if name != inner:
        for node in graph.node:
            map_node(node, {inner: name})
    if is_inner and inner in output_names(graph):
        copied = unique(f"{name}_copy")
        graph.node.append(helper.make_node("Identity", [name], [copied]))
        for value in graph.output:
            value.name = copied if value.name == inner else value.name
