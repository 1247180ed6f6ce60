"""Arithmetic that can be done with fewer nodes."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from .editable_graph import EditableGraph

__all__ = ["drop_identities", "merge_reductions", "sign_of_relu", "simplify_products", "sum_of_squares"]


def simplify_products(graph: EditableGraph) -> None:
    """Drop products with one, and write ``x * s + x * s`` as ``x * 2s``."""
    replaced: dict[str, str] = {}
    nodes: list[NodeProto] = []
    for node in graph.nodes:
        node.input[:] = [replaced.get(name, name) for name in node.input]
        if node.op_type == "Mul" and node.domain == "" and not graph.keeps_name(node.output[0]):
            position = next((i for i in (0, 1) if graph.is_constant(node.input[i], 1.0)), None)
            other = None if position is None else node.input[1 - position]
            if other is not None and graph.shape(other) == graph.shape(node.output[0]) is not None:
                replaced[node.output[0]] = other
                continue
        if node.op_type == "Add" and node.domain == "" and node.input[0] == node.input[1]:
            nodes.extend(_twice(graph, node))
            continue
        nodes.append(node)
    graph.replace(nodes)


def _twice(graph: EditableGraph, node: NodeProto) -> list[NodeProto]:
    product = graph.producer(node.input[0], "Mul")
    if product is None:
        return [node]
    for position, name in enumerate(product.input):
        known = graph.type(name)
        if known is not None and known.shape == ():
            dtype = helper.tensor_dtype_to_np_dtype(known.elem_type)
            value = graph.value(name)
            if value is not None:
                doubled, extra = graph.constant(np.asarray(2 * value, dtype=dtype)), []
            else:
                new, doubled = graph.make("Mul", name, graph.constant(np.asarray(2, dtype=dtype)), like=name)
                extra = [new]
            other = product.input[1 - position]
            new, _ = graph.make("Mul", other, doubled, like=other, output=node.output[0])
            return [*extra, new]
    return [node]


def merge_reductions(graph: EditableGraph) -> None:
    """Write the mean of sums over outputs, ``mean(c * sum(x, axis=1))``, as one sum and one product."""
    nodes: list[NodeProto] = []
    for node in graph.nodes:
        nodes.extend(_merged(graph, node) or [node])
    graph.replace(nodes)


def _merged(graph: EditableGraph, mean: NodeProto) -> list[NodeProto] | None:
    """Return the two nodes a mean over everything can be written with."""
    if mean.op_type != "ReduceMean" or len(mean.input) > 1 or _axes(mean):
        return None
    shape, factor, name = graph.shape(mean.input[0]), 1.0, mean.input[0]
    product = graph.producer(name, "Mul")
    if product is not None and graph.read_once(name):
        value = graph.value(product.input[1])
        if value is not None and value.size == 1:
            factor, name = float(value.reshape(())), product.input[0]
    total = graph.producer(name, "ReduceSum")
    known = graph.type(mean.output[0])
    if shape is None or total is None or not graph.read_once(name) or len(shape) != 1:
        return None
    if known is None or known.shape != ():
        return None
    dtype = helper.tensor_dtype_to_np_dtype(known.elem_type)
    whole, summed = graph.make("ReduceSum", total.input[0], like=mean.output[0], keepdims=0)
    scale = graph.constant(np.asarray(factor / shape[0], dtype=dtype))
    scaled, _ = graph.make("Mul", summed, scale, like=summed, output=mean.output[0])
    return [whole, scaled]


def _axes(node: NodeProto) -> bool:
    return any(a.name == "axes" or (a.name == "noop_with_empty_axes" and a.i) for a in node.attribute)


def sign_of_relu(graph: EditableGraph) -> None:
    """Take the slope of Relu as ``sign(relu(x))``, one node instead of a comparison and a cast."""
    nodes: list[NodeProto] = []
    for node in graph.nodes:
        if node.op_type == "Cast":
            greater = graph.producer(node.input[0], "Greater")
            relu = None if greater is None else graph.producer(greater.input[0], "Relu")
            known = graph.type(node.output[0])
            source = None if relu is None else graph.type(relu.output[0])
            if relu is not None and known is not None and source is not None and greater is not None:
                if graph.is_constant(greater.input[1], 0.0) and known == source:
                    new, _ = graph.make("Sign", relu.output[0], like=relu.output[0], output=node.output[0])
                    nodes.append(new)
                    continue
        nodes.append(node)
    graph.replace(nodes)


def sum_of_squares(graph: EditableGraph) -> None:
    """Write ``sum(x * x)`` over everything as ReduceSumSquare."""
    nodes: list[NodeProto] = []
    for node in graph.nodes:
        if node.op_type == "ReduceSum" and len(node.input) == 1 and not _axes(node):
            square = graph.producer(node.input[0], "Mul")
            source = None if square is None or square.input[0] != square.input[1] else square.input[0]
            if source is not None and graph.is_float(source) and graph.read_once(node.input[0]):
                keepdims = next((a.i for a in node.attribute if a.name == "keepdims"), 1)
                node, _ = graph.make(
                    "ReduceSumSquare", source, like=source, output=node.output[0], keepdims=keepdims
                )
        nodes.append(node)
    graph.replace(nodes)


def drop_identities(graph: EditableGraph) -> None:
    """Let a node write an output itself where an Identity passed it on."""
    renamed: dict[str, str] = {}
    for node in graph.nodes:
        if node.op_type == "Identity" and node.output[0] in graph.outputs:
            source = node.input[0]
            if source in graph.producers and not graph.keeps_name(source) and source not in renamed:
                renamed[source] = node.output[0]
    nodes: list[NodeProto] = []
    for node in graph.nodes:
        if node.op_type == "Identity" and renamed.get(node.input[0]) == node.output[0]:
            continue
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
        nodes.append(node)
    graph.replace(nodes)
