"""Gradients of operators that change shapes or positions, not values."""

from __future__ import annotations

import numpy as np

from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet
from .gather_scatter import scatter_add_flat

__all__ = ["RULES"]

RULES = RuleSet("shapes")

_INT_MAX = np.iinfo(np.int64).max


def _first(node: RuleNode, grad: str) -> list[str | None]:
    return [grad] + [None] * (node.n_inputs - 1)


@RULES.rule("Reshape", "Flatten")
def reshape(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x in another shape, dx = dy in the shape of x
    return _first(node, op.reshape_like(grad, node.I(0)))


@RULES.rule("Squeeze")
def squeeze(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x without axes of length one, dx = dy with them
    return _first(node, op.reshape_like(grad, node.I(0)))


@RULES.rule("Unsqueeze")
def unsqueeze(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x with axes of length one, dx = dy without them
    axes = node.constant(node.I(1))
    known = axes is not None
    return _first(node, op.Squeeze(grad, node.I(1)) if known else op.reshape_like(grad, node.I(0)))


@RULES.rule("Transpose")
def transpose(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x with axes permuted, dx = dy with axes permuted back
    perm = node.attribute("perm")
    if perm is None:
        return op.Transpose(grad)
    return op.transpose(grad, [int(axis) for axis in np.argsort(perm)])


@RULES.rule("Expand")
def expand(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x broadcast, dx = dy summed to the shape of x
    return _first(node, op.unbroadcast(grad, node.I(0)))


@RULES.rule("Concat")
def concat(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = [a, b, ...], da, db, ... = the parts of dy
    axis = node.attribute("axis")
    asked = [index for index in range(node.n_inputs) if node.needs(index)]
    results = [None] * node.n_inputs
    sizes = [op.dim(node.I(index), axis) for index in range(node.n_inputs)]
    values = [op.value(size) for size in sizes]
    if len(asked) == 1 and all(value is not None for value in values[: asked[0] + 1]):
        start = sum(int(value[0]) for value in values[: asked[0]])
        end = start + int(values[asked[0]][0])
        results[asked[0]] = op.Slice(grad, [start], [end], [axis])
        return results
    known = all(value is not None for value in values)
    lengths = [int(value[0]) for value in values] if known else op.Concat(*sizes, axis=0)
    parts = op.Split(grad, lengths, axis=axis, n_outputs=node.n_inputs)
    parts = [parts] if node.n_inputs == 1 else parts
    return [part if node.needs(index) else None for index, part in enumerate(parts)]


@RULES.rule("Split")
def split(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # [a, b, ...] = x, dx = [da, db, ...]
    parts = [node.GO(i) or op.fill_like(node.require_output(i)) for i in range(node.n_outputs)]
    joined = parts[0] if len(parts) == 1 else op.Concat(*parts, axis=node.attribute("axis", 0))
    return _first(node, joined)


@RULES.rule("Slice")
def slice_(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x[a:b], dx = dy with zeros around
    pads = _slice_pads(op, node)
    if pads is not None:
        return _first(node, op.Pad(grad, pads) if any(pads) else grad)
    x = node.I(0)
    positions = op.Slice(_positions(op, x), *(node.I(index) for index in range(1, node.n_inputs)))
    return _first(node, scatter_add_flat(op, x, positions, grad, unique=True))


def _slice_pads(op: GradientBuilder, node: RuleNode) -> list[int] | None:
    """Return the pads that undo a slice with step one, or None if they are unknown."""
    shape = node.shape(node.I(0))
    names = [node.I(index) for index in (1, 2, 3, 4)]
    values = [node.constant(name) for name in names]
    if shape is None or any(value is None for name, value in zip(names, values, strict=True) if name):
        return None
    starts, ends, axes, steps = values
    axes = np.arange(len(starts)) if axes is None else axes
    if starts is None or ends is None or (steps is not None and (steps != 1).any()):
        return None
    before, after = [0] * len(shape), [0] * len(shape)
    for start, end, axis in zip(starts.tolist(), ends.tolist(), axes, strict=True):
        dim = shape[axis]
        if isinstance(dim, int):
            start, end, _ = slice(start, end).indices(dim)
            before[axis], after[axis] = start, dim - max(start, end)
            if end < start:
                return None
        elif start != 0 or end < 2**31 - 1:
            return None
    return before + after


def _positions(op: GradientBuilder, x: str) -> str:
    """Return the position of every element of a tensor, in its shape."""
    shape = op.shape_of(x)
    # Range requires scalars.
    size = op.reduce("ReduceProd", shape, None, keepdims=0)
    numbers = op.Range(np.array(0, np.int64), size, np.array(1, np.int64))
    return op.reshape_to(numbers, shape)


@RULES.rule("Pad")
def pad(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x with a border, dx = dy without the border; values of x in the border add to their gradient
    x = node.I(0)
    others = [node.I(index) for index in range(1, node.n_inputs)]
    if node.attribute("mode", "constant") != "constant":
        positions = op.Pad(_positions(op, x), others[0], "", *others[2:], mode=node.attribute("mode"))
        return _first(node, scatter_add_flat(op, x, positions, grad))
    inside = _unpad(op, node, grad)
    filling = None
    if node.needs(2):
        total, kept = (op.reduce("ReduceSum", name, None, keepdims=0) for name in (grad, inside))
        filling = op.reshape_like(op.Sub(total, kept), node.I(2))
    return [inside, None, filling, None][: node.n_inputs]


def _unpad(op: GradientBuilder, node: RuleNode, grad: str) -> str:
    pads, axes = node.constant(node.I(1)), node.I(3)
    if pads is None or (pads < 0).any():
        # Negative pads remove elements.
        return op.Pad(grad, op.Neg(node.I(1)), "", axes)
    half = len(pads) // 2
    starts = pads[:half].tolist()
    ends = [-int(end) if end else _INT_MAX for end in pads[half:]]
    return op.Slice(grad, starts, ends, axes or list(range(half)))


@RULES.rule("Tile")
def tile(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x repeated, dx = sum of dy over the copies
    x = node.I(0)
    rank = node.rank(x)
    repeats, shape = node.constant(node.I(1)), node.shape(x)
    copies = list(range(0, 2 * rank, 2))
    if repeats is not None and sum(not isinstance(dim, int) for dim in shape) <= 1 and 0 not in shape:
        split_shape = [size for pair in zip(repeats.tolist(), shape, strict=True) for size in pair]
        return _first(node, op.reduce("ReduceSum", op.reshape(grad, split_shape), copies, keepdims=0))

    def summed(op: GradientBuilder) -> str:
        pairs = op.Concat(op.unsqueeze(node.I(1), [1]), op.unsqueeze(op.shape_of(x), [1]), axis=1)
        parts = op.reshape_to(grad, op.Reshape(pairs, [-1]))
        return op.reduce("ReduceSum", parts, copies, keepdims=0)

    # Before opset 14, zeros in a shape mean lengths to copy.
    return _first(node, summed(op) if op.opset >= 14 else op.unless_empty([grad], x, summed))


@RULES.rule("Trilu")
def trilu(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x with a triangle set to zero, dx = dy with the same triangle set to zero
    return _first(node, op.Trilu(grad, node.I(1), upper=node.attribute("upper", 1)))


@RULES.rule("DepthToSpace")
def depth_to_space(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = blocks of channels moved to space, dx = dy moved back
    size = node.attribute("blocksize")
    if node.attribute("mode", "DCR") == "DCR":
        return op.SpaceToDepth(grad, blocksize=size)
    x = node.I(0)
    height, width = op.dim(x, 2), op.dim(x, 3)
    shape = op.Concat(op.Slice(op.Shape(grad), [0], [2]), height, [size], width, [size], axis=0)
    blocks = op.Transpose(op.reshape_to(grad, shape), perm=[0, 1, 3, 5, 2, 4])
    return op.with_type(op.reshape_to(blocks, op.shape_of(x)), x)


@RULES.rule("SpaceToDepth")
def space_to_depth(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = blocks of space moved to channels, dx = dy moved back; with a mode from opset 28 on
    return op.DepthToSpace(grad, blocksize=node.attribute("blocksize"), mode=node.attribute("mode", "DCR"))
