"""Replace nodes that some versions of onnxruntime compute wrongly by equal ones."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, NodeProto

from .editing import copy_model
from .nodes import all_nodes, attribute, constant_value, keeps_order, subgraphs

__all__ = ["portable_nodes"]

#: Operators that equal reductions without axes.
_ELEMENTWISE = {
    "ReduceL1": "Abs",
    "ReduceL2": "Abs",
    "ReduceLogSum": "Log",
    "ReduceLogSumExp": "Identity",
    "ReduceMax": "Identity",
    "ReduceMean": "Identity",
    "ReduceMin": "Identity",
    "ReduceProd": "Identity",
    "ReduceSum": "Identity",
    "ReduceSumSquare": "Mul",
}


def portable_nodes(model: ModelProto) -> ModelProto:
    """Return a model without Transposes that keep the order of axes, and without reductions of no axes.

    onnxruntime 1.19 fuses these Transposes with a Gemm as if they exchanged axes, and computes these
    reductions (``noop_with_empty_axes=1``) as the identity, or fails.
    """
    empty = _empty_constants(model.graph)
    if not any(_replacement(node, empty) for node in all_nodes(model.graph)):
        return model
    model = copy_model(model)
    for node in all_nodes(model.graph):
        replacement = _replacement(node, empty)
        if replacement is not None:
            node.op_type = replacement
            node.input[:] = [node.input[0]] * (2 if replacement == "Mul" else 1)
            del node.attribute[:]
    return model


def _replacement(node: NodeProto, empty: set[str]) -> str | None:
    """Return the operator that replaces a node, if any."""
    if keeps_order(node):
        return "Identity"
    return _ELEMENTWISE[node.op_type] if _reduces_nothing(node, empty) else None


def _reduces_nothing(node: NodeProto, empty: set[str]) -> bool:
    if node.op_type not in _ELEMENTWISE or node.domain not in ("", "ai.onnx"):
        return False
    axes = attribute(node, "axes")
    given = [name for name in node.input[1:] if name]
    return bool(attribute(node, "noop_with_empty_axes", 0)) and not axes and set(given) <= empty


def _empty_constants(graph: GraphProto) -> set[str]:
    """Return the names of constants without elements, in a graph and in its subgraphs."""
    inputs = {value.name for value in graph.input}
    names = {tensor.name for tensor in graph.initializer if 0 in tensor.dims and tensor.name not in inputs}
    for node in graph.node:
        value = constant_value(node)
        names |= set(node.output) if value is not None and value.size == 0 else set()
        for inner in subgraphs(node):
            names |= _empty_constants(inner)
    return names
