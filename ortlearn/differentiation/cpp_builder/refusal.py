"""The reason why the C++ builder does not differentiate a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from onnx import ModelProto, NodeProto, TensorProto

from ...graphs import TensorType, graph_names, node_inputs, opset_versions, subgraphs, value_types
from ...graphs.view import GraphView
from .positive_list import OPERATORS, Site

__all__ = ["CARRIERS", "gradient_path", "refusal"]

#: Versions of the operators that were compared with the rules.
OPSETS = range(13, 22)
#: Types of tensors that may have a gradient; the builder is used for float32 and float64.
CARRIERS = {number for name, number in TensorProto.DataType.items() if "FLOAT" in name or name == "DOUBLE"}


def refusal(model: ModelProto, outputs: Sequence[str], wrt: Sequence[str]) -> str | None:
    """Return why the C++ builder must not differentiate a graph, or None."""
    version = opset_versions(model).get("", 0)
    if version not in OPSETS:
        return f"its opset is {version}, not {OPSETS[0]} to {OPSETS[-1]}"
    if not outputs:
        return "it has no floating-point output"
    for node in model.graph.node:
        if any(True for _ in subgraphs(node)):
            return f"{_named(node)} has a subgraph, which can terminate the process"
    names = graph_names(model.graph)
    taken = sorted(name for name in names if "_grad" in name and name.partition("_grad")[0] in names)
    if taken:
        return f"the names {taken} are those of gradients"
    types = value_types(model)
    path, reached = gradient_path(model, outputs, wrt, types)
    read = set(outputs).union(*(node_inputs(node) for node in path))
    value = GraphView(model).value
    sites = (Site(node, types, reached, read, value) for node in path)
    return next((f"{_named(site.node)}: {fault}" for site in sites if (fault := _fault(site))), None)


def _named(node: NodeProto) -> str:
    return f"{node.op_type} (node {node.name!r})"


def _fault(site: Site) -> str | None:
    """Return the reason why a node is not on the positive list, or None."""
    node = site.node
    form = OPERATORS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if form is None:
        return "the operator is not on the list of those that it is right for"
    tensors = [name for name in (*node.input, *node.output) if name in site.reached or name in node.output]
    kinds = {site.types[name].elem_type for name in tensors if name in site.types}
    supported = {TensorProto.FLOAT, TensorProto.DOUBLE} if form.float64 else {TensorProto.FLOAT}
    if kinds & CARRIERS - supported:
        return "its gradient is right in float32 only"
    if not form.scalars and site.shape(node.input[0]) == ():
        return "the gradient of its scalar has an axis"
    return form.check(site) if form.check else None


def gradient_path(
    model: ModelProto, outputs: Iterable[str], wrt: Iterable[str], types: Mapping[str, TensorType]
) -> tuple[list[NodeProto], set[str]]:
    """Return the nodes from some tensors to outputs, in order, and the tensors that depend on the first.

    A tensor of unknown type counts as floating-point numbers.
    """

    def floats(names: Iterable[str]) -> set[str]:
        return {name for name in names if name and (name not in types or types[name].elem_type in CARRIERS)}

    needed, before = set(outputs), []
    for node in reversed(model.graph.node):
        if not needed.isdisjoint(floats(node.output)):
            before.append(node)
            needed |= floats(node_inputs(node))
    reached, path = set(wrt), []
    for node in reversed(before):
        if not reached.isdisjoint(node_inputs(node)):
            path.append(node)
            reached |= floats(node.output)
    return path, reached
