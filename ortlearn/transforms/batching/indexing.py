"""Operators that select elements by index."""

from __future__ import annotations

from onnx import NodeProto

from ...graphs.nodes import attribute, attributes_of
from .reductions import shifted_axis
from .scope import BatchScope, NotBatchable

__all__ = ["RULES"]


def gather(scope: BatchScope, node: NodeProto) -> None:
    """Write Gather with batched data, batched indices, or both."""
    op, (data, indices), axis = scope.op, node.input, attribute(node, "axis", 0)
    if not scope.is_batched(indices):
        op.Gather(data, indices, axis=shifted_axis(axis), outputs=node.output)
    elif axis not in (0, -scope.rank(data)):
        raise NotBatchable(f"Gather along axis {axis} with indices that differ between candidates.")
    elif scope.is_batched(data):
        op.GatherND(data, op.Unsqueeze(indices, [-1]), batch_dims=1, outputs=node.output)
    else:
        op.Gather(data, indices, axis=0, outputs=node.output)


def elements(scope: BatchScope, node: NodeProto) -> None:
    """Write GatherElements or ScatterElements, whose operands have the same rank."""
    known = attributes_of(node)
    known["axis"] = shifted_axis(known.get("axis", 0))
    scope.op.node(node.op_type, *map(scope.expanded, node.input), outputs=node.output, **known)


def gather_nd(scope: BatchScope, node: NodeProto) -> None:
    """Write GatherND."""
    dims = attribute(node, "batch_dims", 0) + 1
    scope.op.GatherND(*map(scope.expanded, node.input), batch_dims=dims, outputs=node.output)


def one_hot(scope: BatchScope, node: NodeProto) -> None:
    """Write OneHot with batched indices."""
    if any(map(scope.is_batched, node.input[1:])):
        raise NotBatchable("OneHot with a depth or values that differ between candidates.")
    axis = shifted_axis(attribute(node, "axis", -1))
    scope.op.OneHot(*node.input, axis=axis, outputs=node.output)


RULES = {
    ("", "Gather"): gather,
    ("", "GatherElements"): elements,
    ("", "GatherND"): gather_nd,
    ("", "OneHot"): one_hot,
    ("", "ScatterElements"): elements,
}
