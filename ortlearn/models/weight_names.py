"""Numbered names of weights, in the order of the graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from onnx import GraphProto, ModelProto

from ..graphs import copy_model, graph_names, subgraphs

__all__ = ["onnx_rename_weights", "renamed_weights", "restored_names"]

_PREFIX = re.compile(r"^I\d+_")


def _all_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield a graph and its subgraphs."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _all_graphs(inner)


def renamed_weights(onx: ModelProto) -> tuple[ModelProto, dict[str, str]]:
    """Return a copy of a model with numbered initializers, and the old name of each new one.

    Initializers of subgraphs are included.
    """
    model = copy_model(onx)
    tensors = [tensor.name for graph in _all_graphs(model.graph) for tensor in graph.initializer]
    new_names = _new_names(len(tensors), graph_names(model.graph) - set(tensors))
    names: dict[str, str] = {}
    _rename(model.graph, {}, new_names, names)
    return model, names


def _new_names(total: int, taken: set[str]) -> Callable[[str], str]:
    """Return a function from the name of an initializer to a new, numbered one."""
    counter, width = iter(range(total)), len(str(max(total - 1, 0)))

    def new_name(old: str) -> str:
        name = f"I{next(counter):0{width}d}_{_PREFIX.sub('', old)}"
        while name in taken:
            name += "_"
        return name

    return new_name


def restored_names(model: ModelProto, names: Mapping[str, str]) -> ModelProto:
    """Return a model renamed by :func:`renamed_weights`, or a part of it, with its old names."""
    model = copy_model(model)
    # new names are unique in the model, so scopes can be ignored
    for graph in _all_graphs(model.graph):
        for value in (*graph.initializer, *graph.input, *graph.output, *graph.value_info):
            value.name = names.get(value.name, value.name)
        for node in graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]
    return model


def _rename(
    graph: GraphProto, outer: dict[str, str], new_name: Callable[[str], str], names: dict[str, str]
) -> None:
    """Rename initializers, also of subgraphs; add the old names by the new ones to ``names``."""
    renamed = {tensor.name: new_name(tensor.name) for tensor in graph.initializer}
    names.update({new: old for old, new in renamed.items()})
    hidden = {value.name for value in graph.input} | {name for node in graph.node for name in node.output}
    mapping = {old: new for old, new in outer.items() if old not in hidden} | renamed
    for value in (*graph.initializer, *graph.input, *graph.output, *graph.value_info):
        value.name = mapping.get(value.name, value.name)
    for node in graph.node:
        node.input[:] = [mapping.get(name, name) for name in node.input]
        for inner in subgraphs(node):
            _rename(inner, mapping, new_name, names)


def onnx_rename_weights(onx: ModelProto) -> ModelProto:
    """Return the model with its initializers renamed ``I0_coef``, ``I1_intercept``, ...

    The numbers have the same width, so that sorted names are in the order of the graph. Initializers of
    subgraphs are numbered after those of the main graph. Renaming a renamed model changes nothing.

    Parameters
    ----------
    onx : onnx.ModelProto
        Model; it is not changed.

    Returns
    -------
    onnx.ModelProto
        Renamed model.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion import onnx_rename_weights
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,1] x) => (float[N,1] y) <float[1,1] weight = {2}, float[1] bias = {1}>
    ...     { z = MatMul (x, weight) y = Add (z, bias) }''')
    >>> [tensor.name for tensor in onnx_rename_weights(model).graph.initializer]
    ['I0_weight', 'I1_bias']
    """
    return renamed_weights(onx)[0]
