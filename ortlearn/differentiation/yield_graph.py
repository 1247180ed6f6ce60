"""Forward and backward graph with a YieldOp between them, by the built-in rules."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto, helper

from ..graphs.editing import with_fields
from .gradient_model import gradient_model
from .rule_context import FLOAT_TYPES
from .typed_builder import LOW_PRECISION

__all__ = ["yield_graph"]


def yield_graph(model: ModelProto, wrt: Sequence[str], straight_through: bool = False) -> ModelProto:
    """Return a graph of the outputs, a YieldOp from them to their gradients, and the backward nodes."""
    whole = gradient_model(model, None, wrt, keep_outputs=True, straight_through=straight_through)
    graph = whole.graph
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
    del graph.input[len(model.graph.input) :], graph.output[: len(kept)]
    nodes, read = list(graph.node), set(node.input)
    position = max((i + 1 for i, other in enumerate(nodes) if read.intersection(other.output)), default=0)
    return with_fields(whole, {"com.microsoft": 1}, node=[*nodes[:position], node, *nodes[position:]])


def _has_gradient(value) -> bool:
    return value.type.tensor_type.elem_type in (*FLOAT_TYPES, *LOW_PRECISION)
