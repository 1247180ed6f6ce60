"""Arithmetic that can be done with fewer nodes."""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import NodeProto

from ...graphs.nodes import attribute
from ...graphs.view import GraphView

__all__ = ["drop_identities", "merge_reductions", "simplify_products", "sum_of_squares"]


def simplify_products(graph: GraphView) -> None:
    """Drop products with one, and write ``x * s + x * s`` as ``x * 2s``."""
    graph.rewrite(partial(_simpler, graph))


def _simpler(graph: GraphView, node: NodeProto) -> bool | str:
    if node.domain != "" or node.op_type not in ("Mul", "Add"):
        return False
    if node.op_type == "Add":
        return node.input[0] == node.input[1] and _twice(graph, node)
    for one, other in (node.input, reversed(node.input)):
        if graph.is_constant(one, 1.0) and not graph.keeps_name(node.output[0]):
            return other if graph.sizes(other) == graph.sizes(node.output[0]) is not None else False
    return False


def _twice(graph: GraphView, node: NodeProto) -> bool:
    op, product = graph.op, graph.producer(node.input[0], "Mul")
    if product is None:
        return False
    for name, other in (product.input, reversed(product.input)):
        if op.shape(name) == ():
            value, two = graph.value(name), np.asarray(2, dtype=op.dtype(name))
            doubled = graph.copy_type(op.Mul(name, two), name) if value is None else value + value
            op.Mul(other, doubled, outputs=node.output)
            return True
    return False


def merge_reductions(graph: GraphView) -> None:
    """Write the mean of sums over outputs, ``mean(c * sum(x, axis=1))``, as one sum and one product."""
    graph.rewrite(partial(_merged, graph))


def _merged(graph: GraphView, mean: NodeProto) -> bool:
    if mean.op_type != "ReduceMean" or len(mean.input) > 1 or _axes(mean):
        return False
    op, sizes, factor, name = graph.op, graph.sizes(mean.input[0]), 1.0, mean.input[0]
    product = graph.producer(name, "Mul")
    if product is not None and graph.read_once(name):
        value = graph.value(product.input[1])
        if value is not None and value.size == 1:
            factor, name = float(value.item()), product.input[0]
    total = graph.producer(name, "ReduceSum")
    if sizes is None or total is None or not graph.read_once(name) or len(sizes) != 1:
        return False
    if op.shape(mean.output[0]) != ():
        return False
    scale = np.asarray(factor / sizes[0], dtype=op.dtype(mean.output[0]))
    whole = graph.copy_type(op.ReduceSum(total.input[0], keepdims=0), mean.output[0])
    op.Mul(whole, scale, outputs=mean.output)
    return True


def _axes(node: NodeProto) -> bool:
    return attribute(node, "axes") is not None or attribute(node, "noop_with_empty_axes", 0) != 0


def sum_of_squares(graph: GraphView) -> None:
    """Write ``sum(x * x)`` over everything as ReduceSumSquare."""
    graph.rewrite(partial(_squares, graph))


def _squares(graph: GraphView, node: NodeProto) -> bool:
    if node.op_type != "ReduceSum" or len(node.input) != 1 or _axes(node):
        return False
    square = graph.producer(node.input[0], "Mul")
    if square is None or square.input[0] != square.input[1] or not graph.read_once(node.input[0]):
        return False
    if not graph.is_float(square.input[0]):
        return False
    keepdims = attribute(node, "keepdims", 1)
    graph.op.ReduceSumSquare(square.input[0], keepdims=keepdims, outputs=node.output)
    return True


def drop_identities(graph: GraphView) -> None:
    """Let a node write an output itself where an Identity passed it on."""
    renamed: dict[str, str] = {}
    for node in graph.nodes:
        if node.op_type == "Identity" and node.output[0] in graph.outputs:
            source = node.input[0]
            if source in graph.producers and not graph.keeps_name(source):
                renamed.setdefault(source, node.output[0])
    graph.rename(renamed)
