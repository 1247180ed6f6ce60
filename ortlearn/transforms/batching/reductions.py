"""Reductions, softmax, and classification losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import NodeProto

from ...graphs.nodes import attribute, attributes_of
from .scope import BatchScope, NotBatchable

__all__ = ["RULES", "axes_of", "shifted_axis"]

REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()


def shifted_axis(axis: int) -> int:
    """Return the number of an axis once a leading axis is inserted; negative numbers do not change."""
    return axis + 1 if axis >= 0 else axis


def axes_of(scope: BatchScope, node: NodeProto, slot: int = 1) -> list[int] | None:
    """Return the axes of a node, from an input or an attribute, or None."""
    if len(node.input) > slot and node.input[slot]:
        return [int(axis) for axis in scope.value(node.input[slot]).ravel()]
    found = attribute(node, "axes")
    return None if found is None else list(found)


def write_with_axes(scope: BatchScope, node: NodeProto, data: str, axes: Sequence[int]) -> None:
    """Write a node with other data and axes."""
    kind = node.op_type
    if kind == "ReduceSumSquare":  # three times as slow in onnxruntime if it reduces only some of the axes
        kind, data = "ReduceSum", scope.op.Mul(data, data)
    is_input = kind == "ReduceSum" or (attribute(node, "axes") is None and scope.op.opset >= 18)
    known = {k: v for k, v in attributes_of(node).items() if k not in ("axes", "noop_with_empty_axes")}
    inputs = [data, list(axes)] if is_input else [data]
    if not is_input:
        known["axes"] = list(axes)
    scope.op.node(kind, *inputs, outputs=node.output, **known)


def reduction(scope: BatchScope, node: NodeProto) -> None:
    """Write a reduction."""
    data, axes, rank = node.input[0], axes_of(scope, node), scope.rank(node.input[0])
    if not axes and attribute(node, "noop_with_empty_axes", 0):
        raise NotBatchable(f"{node.op_type} with noop_with_empty_axes=1 and without axes.")
    if rank == 0:
        result = scope.op.node(node.op_type, scope.op.Unsqueeze(data, [1]), [1], keepdims=0)
        scope.op.Identity(result, outputs=node.output)
        return
    write_with_axes(scope, node, data, [shifted_axis(axis) for axis in (axes or range(rank))])


def along_axis(default: int) -> Any:
    """Return the rule of operators with the attribute ``axis``."""

    def rule(scope: BatchScope, node: NodeProto) -> None:
        known = attributes_of(node)
        known["axis"] = shifted_axis(known.get("axis", default))
        scope.op.node(node.op_type, *node.input, outputs=node.output, **known)

    return rule


def cumsum(scope: BatchScope, node: NodeProto) -> None:
    """Write CumSum, whose axis is an input."""
    axis = shifted_axis(scope.value(node.input[1]).item())
    scope.op.node("CumSum", node.input[0], axis, outputs=node.output, **attributes_of(node))


def cross_entropy(scope: BatchScope, node: NodeProto) -> None:
    """Write SoftmaxCrossEntropyLoss on the concatenated samples of all candidates."""
    known, (scores, labels) = attributes_of(node), node.input[:2]
    reduction = known.pop("reduction", b"mean").decode()
    weights = list(node.input[2:])
    averaged = reduction == "mean" and (weights or "ignore_index" in known)
    if scope.rank(scores) != 2 or averaged or any(map(scope.is_batched, weights)):
        raise NotBatchable(
            f"SoftmaxCrossEntropyLoss with reduction={reduction!r} of weighted or ignored labels."
        )
    op, n_classes = scope.op, scope.size_of(scores, 1)
    rows = op.Reshape(scope.expanded(scores), [-1, n_classes])
    flat = op.Reshape(scope.expanded(labels), [-1])
    results = op.node("SoftmaxCrossEntropyLoss", rows, flat, *weights, n_outputs=2, reduction="none", **known)
    if reduction == "none":
        op.Reshape(results[0], scope.lengths(-1), outputs=node.output[:1])
    else:
        kind = "ReduceMean" if reduction == "mean" else "ReduceSum"
        op.node(kind, op.Reshape(results[0], scope.lengths(-1)), [1], keepdims=0, outputs=node.output[:1])
    if len(node.output) > 1 and node.output[1]:
        op.Reshape(results[1], scope.lengths(-1, n_classes), outputs=node.output[1:])


RULES = {
    **{("", f"Reduce{name}"): reduction for name in REDUCTIONS},
    **{("", name): along_axis(-1) for name in ("Softmax", "LogSoftmax", "Hardmax")},
    **{("", name): along_axis(0) for name in ("ArgMax", "ArgMin")},
    ("", "CumSum"): cumsum,
    ("", "SoftmaxCrossEntropyLoss"): cross_entropy,
}
