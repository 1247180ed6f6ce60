"""Graphs with a YieldOp between forward and backward, which onnxruntime-training runs in two parts."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, helper

from ...graphs.editing import with_fields
from .refusal import CARRIERS

__all__ = ["yield_graph"]


def yield_graph(model: ModelProto, gradient: ModelProto) -> ModelProto:
    """Return a graph with a YieldOp from the outputs of a model to their gradients.

    ``gradient`` has the outputs of the model first, and their gradients as last inputs.
    """
    graph = gradient.graph
    kept = [value.name for value in model.graph.output]
    seeds = [value.name for value in graph.input][len(model.graph.input) :]
    without = [index for index, value in enumerate(graph.output[: len(kept)]) if not _has_gradient(value)]
    node = helper.make_node(
        "YieldOp",
        kept,
        seeds,
        domain="com.microsoft",
        name="yield",
        full_shape_outputs=list(range(len(kept))),
    )
    if without:
        node.attribute.append(helper.make_attribute("non_differentiable_outputs", without))
    nodes, read = list(graph.node), set(node.input)
    position = max((i + 1 for i, other in enumerate(nodes) if read.intersection(other.output)), default=0)
    return with_fields(
        gradient,
        {"com.microsoft": 1},
        node=[*nodes[:position], node, *nodes[position:]],
        input=graph.input[: len(model.graph.input)],
        output=graph.output[len(kept) :],
    )


def _has_gradient(value: Any) -> bool:
    return value.type.tensor_type.elem_type in CARRIERS
