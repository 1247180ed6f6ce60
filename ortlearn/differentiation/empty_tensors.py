"""Operators that terminate onnxruntime, or have wrong results, if a tensor has no elements."""

from __future__ import annotations

from onnx import NodeProto, TensorProto, helper

from ..graphs import TensorType, make_value_info
from ..graphs.nodes import attribute, copy_node
from .gradient_builder import GradientBuilder

__all__ = ["guard_top_k"]


def guard_top_k(op: GradientBuilder, node: NodeProto) -> list[NodeProto]:
    """Return the nodes of a TopK that is skipped if its input is empty."""
    x, count = node.input
    shape = op.shape(x)
    axis = attribute(node, "axis", -1)
    if shape is not None and all(isinstance(dim, int) and dim > 0 for dim in shape):
        return [node]
    first, empty = op.child({}), op.child({})
    some = first.Greater(first.Size(x), first.constant(0))
    names = [op.unique(f"{name or 'unused'}_chosen") for name in node.output]
    top_k = copy_node(node, outputs=names)
    # An empty tensor of the shape that TopK returns.
    values = empty.Slice(x, [0], count, [axis])
    empty_outputs = [values, empty.Cast(values, to=TensorProto.INT64)][: len(names)]
    kinds = [op.elem_type(x), TensorProto.INT64]
    types = [op.type(n) or (TensorType(k) if k else None) for n, k in zip(node.output, kinds, strict=False)]
    branches = {
        side: helper.make_graph(
            nodes, side, [], [make_value_info(n, k) for n, k in zip(outputs, types, strict=True)]
        )
        for side, nodes, outputs in (
            ("then_branch", [top_k], names),
            ("else_branch", empty.nodes, empty_outputs),
        )
    }
    outputs = [name or op.unique("unused") for name in node.output]
    return [*first.nodes, helper.make_node("If", [some], outputs, name=node.name, **branches)]
