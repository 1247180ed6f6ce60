"""Scalars with the rank of the columns that they are broadcast to."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from onnx import NodeProto

from ...graphs.nodes import copy_node
from ...graphs.view import GraphView

__all__ = ["align_scalars"]

BROADCASTING = {"Add", "Div", "Equal", "Greater", "Less", "Max", "Min", "Mul", "Pow", "Sub", "Where"}
#: Minimum number of elements for which a Reshape in every batch is worth its cost.
MIN_ELEMENTS = 64


def align_scalars(graph: GraphView) -> None:
    """Reshape scalars to the rank of the column that a node broadcasts them to.

    onnxruntime takes 7 ns per element of a column of shape (n, 1) if the other operand has the shape () or
    (1,), and is 50 times as fast for the shape (1, 1).
    """
    graph.rewrite(partial(_align_node, graph, {}))


def _align_node(graph: GraphView, made: dict[tuple[str, int], str], node: NodeProto) -> bool:
    if node.domain not in ("", "ai.onnx") or node.op_type not in BROADCASTING or len(node.input) < 2:
        return False
    sizes = graph.sizes(node.output[0])
    if sizes is None or len(sizes) < 2 or sizes[-1] != 1 or sizes == (1,) * len(sizes):
        return False
    rank, is_large = len(sizes), math.prod(sizes) >= MIN_ELEMENTS
    inputs = [
        _with_rank(graph, made, name, rank)
        if graph.op.shape(name) in ((), (1,)) and (is_large or _is_invariant(graph, name))
        else name
        for name in node.input
    ]
    if inputs == list(node.input):
        return False
    graph.op.nodes.append(copy_node(node, inputs))
    return True


def _is_invariant(graph: GraphView, name: str) -> bool:
    """Return whether a scalar depends only on constants and scalar inputs, such as the learning rate."""
    node = graph.producers.get(name)
    if node is None:
        return graph.op.shape(name) in ((), (1,))
    return all(_is_invariant(graph, read) for read in node.input)


def _with_rank(graph: GraphView, made: dict[tuple[str, int], str], name: str, rank: int) -> str:
    """Return a scalar reshaped to a rank."""
    if (name, rank) not in made:
        value = graph.value(name)
        if value is None:
            made[name, rank] = graph.op.Reshape(name, np.ones(rank, dtype=np.int64))
        else:
            made[name, rank] = graph.op.constant(value.reshape((1,) * rank))
    return made[name, rank]
