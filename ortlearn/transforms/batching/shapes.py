"""Operators that reshape, join or split tensors."""

from __future__ import annotations

from typing import Any

from onnx import NodeProto

from ...graphs.nodes import attribute, attributes_of
from .reductions import along_axis, axes_of, shifted_axis, write_with_axes
from .scope import BatchScope, NotBatchable

__all__ = ["RULES"]


def batched_shape(scope: BatchScope, node: NodeProto, first: Any) -> str:
    """Return the shape that a node reads, after the lengths ``first``."""
    if scope.is_batched(node.input[1]):
        raise NotBatchable(f"{node.op_type} with a shape that differs between candidates.")
    return scope.op.Concat(first, node.input[1], axis=0)


def reshape(scope: BatchScope, node: NodeProto) -> None:
    """Write Reshape; a zero in the shape still refers to the same axis of the input."""
    first = scope.length if attribute(node, "allowzero", 0) else [scope.axis]
    shape = batched_shape(scope, node, first)
    scope.op.node("Reshape", node.input[0], shape, outputs=node.output, **attributes_of(node))


def flatten(scope: BatchScope, node: NodeProto) -> None:
    """Write Flatten as a Reshape."""
    axis, name = attribute(node, "axis", 1), node.input[0]
    lengths = [scope.size_of(name, number) for number in range(scope.rank(name))]
    first = 1
    for length in lengths[:axis]:
        first *= length
    scope.op.Reshape(name, [scope.axis, first, -1], outputs=node.output)


def transpose(scope: BatchScope, node: NodeProto) -> None:
    """Write Transpose."""
    perm = attribute(node, "perm") or list(reversed(range(scope.rank(node.input[0]))))
    scope.op.Transpose(node.input[0], perm=[0, *(axis + 1 for axis in perm)], outputs=node.output)


def squeeze(scope: BatchScope, node: NodeProto) -> None:
    """Write Squeeze, by default of all axes of length one."""
    axes, name = axes_of(scope, node), node.input[0]
    if axes is None:
        axes = [axis for axis in range(scope.rank(name)) if scope.size_of(name, axis) == 1]
    write_with_same_axes(scope, node, axes)


def unsqueeze(scope: BatchScope, node: NodeProto) -> None:
    """Write Unsqueeze."""
    write_with_same_axes(scope, node, axes_of(scope, node) or [])


def write_with_same_axes(scope: BatchScope, node: NodeProto, axes: list[int]) -> None:
    """Write Squeeze or Unsqueeze with axes as an attribute (opset < 13) or an input."""
    shifted = [shifted_axis(axis) for axis in axes]
    if attribute(node, "axes") is not None:
        write_with_axes(scope, node, node.input[0], shifted)
    else:
        scope.op.node(node.op_type, node.input[0], shifted, outputs=node.output)


def expand(scope: BatchScope, node: NodeProto) -> None:
    """Write Expand."""
    length = scope.size_of(node.input[1], 0)
    missing = max(0, scope.rank(node.input[0]) - length)
    shape = batched_shape(scope, node, [1] * (1 + missing))
    scope.op.Expand(scope.aligned(node.input[0], length), shape, outputs=node.output)


def concat(scope: BatchScope, node: NodeProto) -> None:
    """Write Concat."""
    parts = [scope.expanded(name) for name in node.input]
    scope.op.Concat(*parts, axis=shifted_axis(attribute(node, "axis")), outputs=node.output)


def slice_(scope: BatchScope, node: NodeProto) -> None:
    """Write Slice, by default along the first axes."""
    if attribute(node, "starts") is not None or any(map(scope.is_batched, node.input[1:])):
        raise NotBatchable("Slice with bounds as attributes, or that differ between candidates.")
    axes = axes_of(scope, node, 3)
    if axes is None:
        axes = list(range(len(scope.value(node.input[1]))))
    data, starts, ends = node.input[:3]
    scope.op.Slice(
        data, starts, ends, [shifted_axis(axis) for axis in axes], *node.input[4:], outputs=node.output
    )


def tile(scope: BatchScope, node: NodeProto) -> None:
    """Write Tile."""
    repeats = [int(times) for times in scope.value(node.input[1])]
    scope.op.Tile(node.input[0], [1, *repeats], outputs=node.output)


def shape(scope: BatchScope, node: NodeProto) -> list[str]:
    """Write Shape, whose result is shared."""
    known = {name: shifted_axis(value) for name, value in attributes_of(node).items()}
    known.setdefault("start", 1)
    scope.op.Shape(node.input[0], outputs=node.output, **known)
    return list(node.output)


def einsum(scope: BatchScope, node: NodeProto) -> None:
    """Write Einsum with an additional letter in the terms of batched operands."""
    equation = attribute(node, "equation").decode().replace(" ", "")
    left, arrow, result = equation.partition("->")
    letter = next(letter for letter in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if letter not in equation)
    if not arrow or "." in equation:
        raise NotBatchable(f"Einsum {equation!r} has no output term, or an ellipsis.")
    terms = [
        letter + term if scope.is_batched(name) else term
        for term, name in zip(left.split(","), node.input, strict=True)
    ]
    equation = f"{','.join(terms)}->{letter}{result}"
    scope.op.Einsum(*node.input, equation=equation, outputs=node.output)


RULES = {
    ("", "Concat"): concat,
    ("", "Einsum"): einsum,
    ("", "Expand"): expand,
    ("", "Flatten"): flatten,
    ("", "Reshape"): reshape,
    ("", "Shape"): shape,
    ("", "Slice"): slice_,
    ("", "Split"): along_axis(0),
    ("", "Squeeze"): squeeze,
    ("", "Tile"): tile,
    ("", "Transpose"): transpose,
    ("", "Unsqueeze"): unsqueeze,
}
