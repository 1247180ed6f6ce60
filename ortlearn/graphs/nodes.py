"""Functions of nodes: attributes, subgraphs, inputs, copies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

__all__ = [
    "all_nodes",
    "attribute",
    "attributes_of",
    "captured_names",
    "constant_value",
    "copy_node",
    "count_nodes",
    "keeps_order",
    "needed_nodes",
    "node_inputs",
    "subgraphs",
]


def attribute(node: NodeProto, name: str, default: Any = None) -> Any:
    """Return the value of an attribute of a node, or a default."""
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """Return the attributes of a node by name."""
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def constant_value(node: NodeProto) -> np.ndarray | None:
    """Return the value of a Constant node; None if it is not a dense tensor, or for other nodes."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    for name, value in attributes_of(node).items():
        if isinstance(value, TensorProto):
            return numpy_helper.to_array(value)
        if name in ("value_int", "value_ints"):
            return np.array(value, dtype=np.int64)
        if name in ("value_float", "value_floats"):
            return np.array(value, dtype=np.float32)
        if name in ("value_string", "value_strings"):
            return np.array(value, dtype=object)
    return None


def copy_node(
    node: NodeProto, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> NodeProto:
    """Return a copy of a node, optionally with other inputs or outputs."""
    copied = NodeProto()
    copied.CopyFrom(node)
    if inputs is not None:
        copied.input[:] = inputs
    if outputs is not None:
        copied.output[:] = outputs
    return copied


def keeps_order(node: NodeProto) -> bool:
    """Return whether a node is a Transpose that leaves all axes in place."""
    perm = attribute(node, "perm") if node.op_type == "Transpose" and node.domain in ("", "ai.onnx") else None
    return perm is not None and list(perm) == sorted(perm)


def needed_nodes(nodes: Sequence[NodeProto], outputs: Collection[str]) -> list[NodeProto]:
    """Return the nodes that some tensors depend on, in order."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            kept.append(node)
            needed |= node_inputs(node)
    return kept[::-1]


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs in the attributes of a node (branches of If, bodies of Loop and Scan)."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def all_nodes(graph: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph, or of a function, and of its subgraphs."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from all_nodes(inner)


def count_nodes(graph: GraphProto) -> int:
    """Return the number of nodes of a graph, those of its subgraphs included."""
    return sum(1 for _ in all_nodes(graph))


def node_inputs(node: NodeProto) -> set[str]:
    """Return all names that a node reads, including those that its subgraphs capture."""
    return {name for name in node.input if name} | captured_names(node)


def captured_names(node: NodeProto) -> set[str]:
    """Return the names that the subgraphs of a node capture; inputs of the node may be among them."""
    names: set[str] = set()
    for graph in subgraphs(node):
        inner = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        inner |= {name for child in graph.node for name in child.output}
        read = set().union(*(node_inputs(child) for child in graph.node), {o.name for o in graph.output})
        names |= read - inner
    return names
