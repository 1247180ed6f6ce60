"""Gradients of gather and scatter operators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet

__all__ = ["RULES", "scatter_add_flat", "scatter_add_rows"]

RULES = RuleSet("gather_scatter")

#: First opset in which scatter operators add. Rules use ScatterElements, because ScatterND of onnxruntime
#: 1.19 loses values if several threads add to the same element.
_ADDING = 16
#: Sums of rows by known numbers are products, for so many sums, and elements of the left factor.
MOST_ROWS, MOST_PRODUCTS = 256, 1 << 21


def scatter_add_rows(op: GradientBuilder, rows: str, indices: str, updates: str) -> str:
    """Return a matrix of ``rows`` (shape (1,)) rows, the sums of those of ``updates`` with each index.

    ``indices`` has shape (n,) and ``updates`` (n, m).
    """
    if op.opset >= _ADDING:
        zeros = op.fill(op.Concat(rows, op.dim(updates, 1), axis=0))
        positions = op.Expand(op.unsqueeze(indices, [1]), op.Shape(updates))
        return op.ScatterElements(zeros, positions, updates, axis=0, reduction="add")
    depth = op.Squeeze(rows, [0])
    # MatMul, because Gemm of onnxruntime rejects an empty sum.
    return op.product(op.one_hot(indices, depth, axis=0, rank=1), updates)


def scatter_add_flat(
    op: GradientBuilder, like: str, positions: str, updates: str, unique: bool = False
) -> str:
    """Return a tensor of the shape of another one, zero but for values added at positions.

    ``positions`` and ``updates`` have one shape; positions count the elements of ``like`` row by row.
    """
    positions, updates = op.Reshape(positions, [-1]), op.Reshape(updates, [-1])
    size = op.Reshape(op.reduce("ReduceProd", op.shape_of(like), None, keepdims=0), [1])
    if unique or op.opset >= _ADDING:
        zeros = op.fill(size)
        reduction = None if unique else "add"
        flat = op.ScatterElements(zeros, positions, updates, axis=0, reduction=reduction)
    else:
        flat = scatter_add_rows(op, size, positions, op.unsqueeze(updates, [1]))
    return op.reshape_like(flat, like)


@RULES.rule("Gather")
def gather(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x[i] along an axis, dx[i] += dy
    return gather_gradient(op, node, grad, node.attribute("axis", 0), node.I(1)), None


def gather_gradient(op: GradientBuilder, node: RuleNode, grad: str, axis: int, index: str) -> str:
    """Return the gradient of the first input of a node that gathers its values at an index."""
    x = node.I(0)
    if 0 in (node.shape(index) or ()):
        return op.constant_gradient(x)
    rank, shape = node.rank(x), node.shape(x)
    axis %= rank
    indices = node.constant(index)
    if indices is not None and indices.size == 1 and isinstance(shape[axis], int):
        # One row: zeros before and after.
        position = int(indices.reshape(())) % shape[axis]
        pads = [0] * (2 * rank)
        pads[axis], pads[rank + axis] = position, shape[axis] - 1 - position
        one = op.unsqueeze(grad, [axis]) if indices.ndim == 0 else grad
        if indices.ndim > 1:
            one = op.squeeze(grad, list(range(axis, axis + indices.ndim - 1)))
        return op.Pad(one, pads) if any(pads) else one
    if indices is not None and indices.ndim == 1 and isinstance(shape[axis], int):
        whole = _gather_at_constants(op, grad, axis, rank, indices % shape[axis], shape[axis])
        if whole:
            return whole
    if axis == 0 and op.opset >= _ADDING:
        return _gather_of_first_axis(op, node, grad, index)
    return _gather_by_rows(op, node, grad, axis, index)


def _gather_at_constants(
    op: GradientBuilder, grad: str, axis: int, rank: int, indices: np.ndarray, length: int
) -> str:
    """Return the gradient for known indices by operators that are faster than scatter, or an empty name."""
    inverse = np.full(length, len(indices))
    inverse[indices] = np.arange(len(indices))
    if (np.bincount(indices, minlength=length) <= 1).all():  # each row is read once, or not at all
        pads = [0] * (2 * rank)
        pads[rank + axis] = int(len(indices) < length)
        padded = op.Pad(grad, pads) if any(pads) else grad
        return op.Gather(padded, inverse, axis=axis)
    if axis == 0 and rank == 2 and length <= MOST_ROWS and length * len(indices) <= MOST_PRODUCTS:
        is_row = op.Equal(indices[None], np.arange(length)[:, None])
        return op.MatMul(op.cast_like(is_row, grad), grad)
    return ""


def _gather_of_first_axis(op: GradientBuilder, node: RuleNode, grad: str, index: str) -> str:
    x = node.I(0)
    rank = node.rank(x)
    known = node.shape(index)
    if known is None or len(known) != 1:
        shape = node.shape(x)[1:]
        if all(isinstance(dim, int) and dim > 0 for dim in shape):
            grad = op.Reshape(grad, [-1, *shape])
        else:
            rest = [op.dim(x, other) for other in range(1, rank)]
            grad = op.reshape_to(grad, op.Concat(op.Reshape(op.Size(index), [1]), *rest, axis=0))
    positions = op.Reshape(index, [-1] + [1] * (rank - 1))
    if rank > 1:
        positions = op.Expand(positions, op.Shape(grad))
    return op.ScatterElements(op.fill_like(x), positions, grad, axis=0, reduction="add")


def _gather_by_rows(op: GradientBuilder, node: RuleNode, grad: str, axis: int, index: str) -> str:
    x = node.I(0)
    rank, width = node.rank(x), node.rank(index)
    # The axes of the indices first, then the other axes of x.
    moved = [*range(axis, axis + width), *range(axis), *range(axis + width, rank + width - 1)]
    rest = [other for other in range(rank) if other != axis]
    sizes = [op.dim(x, other) for other in rest]
    length = op.Reshape(op.Size(index), [1])
    columns = (
        op.reduce("ReduceProd", op.Concat(*sizes, axis=0), None, keepdims=1) if rest else op.constant([1])
    )
    updates = op.reshape_to(op.transpose(grad, moved), op.Concat(length, columns, axis=0))
    summed = scatter_add_rows(op, op.dim(x, axis), op.Reshape(index, [-1]), updates)
    whole = op.reshape_to(summed, op.Concat(op.dim(x, axis), *sizes, axis=0))
    back = [0] * rank
    for position, other in enumerate([axis, *rest]):
        back[other] = position
    return op.transpose(whole, back)


@RULES.rule("Compress")
def compress(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x at the positions i where a condition holds, dx at i = dy
    positions, axis = op.Reshape(op.NonZero(node.I(1)), [-1]), node.attribute("axis")
    if axis is None:
        return scatter_add_flat(op, node.I(0), positions, grad, unique=True), None
    op.set_type(positions, TensorProto.INT64, (None,))
    return gather_gradient(op, node, grad, axis, positions), None


@RULES.rule("GatherElements")
def gather_elements(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x[i] element by element along an axis, dx[i] += dy
    x, axis = node.I(0), node.attribute("axis", 0)
    if op.opset >= _ADDING:
        return op.ScatterElements(op.fill_like(x), node.I(1), grad, axis=axis, reduction="add"), None
    axis %= node.rank(x)
    hot = op.one_hot(node.I(1), op.dim(x, axis, scalar=True), axis=axis, rank=node.rank(x))
    summed = op.reduce("ReduceSum", op.Mul(hot, op.unsqueeze(grad, [axis])), [axis + 1], keepdims=0)
    # Indices may be shorter than x along the other axes.
    missing = op.Sub(op.shape_of(x), op.Shape(summed))
    return op.Pad(summed, op.Concat(op.fill(op.Shape(missing), 0, np.int64), missing, axis=0)), None


@RULES.rule("OneHot")
def one_hot(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = v1 where the position is the index, else v0: dv1 = sum of dy there, dv0 = sum of dy elsewhere
    if not node.needs(2):
        return None, None, None
    depth = op.cast(op.Reshape(node.I(1), np.array([], np.int64)), np.int64)
    axis, rank = node.attribute("axis", -1), node.rank(node.I(0))
    chosen = op.Mul(grad, op.one_hot(node.I(0), depth, axis, rank))
    total, on = (op.reduce("ReduceSum", name, None, keepdims=0) for name in (grad, chosen))
    return None, None, op.Concat(*(op.Reshape(part, [1]) for part in (op.Sub(total, on), on)), axis=0)


@RULES.rule("GatherND")
def gather_nd(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x[i, j, ...], dx[i, j, ...] += dy
    if 0 in (node.shape(node.I(1)) or ()):
        return op.constant_gradient(node.I(0)), None
    x, indices = node.I(0), _full_indices(op, node)
    if not isinstance((node.shape(node.I(1)) or (None,))[-1], int) and op.opset >= _ADDING:
        return op.ScatterND(op.fill_like(x), indices, grad, reduction="add"), None
    width = _last_dim(node) + node.attribute("batch_dims", 0)
    return _scatter_nd_by_rows(op, x, indices, grad, width), None


def _last_dim(node: RuleNode) -> int:
    width = (node.shape(node.I(1)) or (None,))[-1]
    if not isinstance(width, int):
        raise node.error("the last dimension of the indices must be known")
    return width


def _full_indices(op: GradientBuilder, node: RuleNode) -> str:
    """Return the indices preceded by those of the batch."""
    indices, batch = node.I(1), node.attribute("batch_dims", 0)
    rank = node.rank(indices)
    columns = []
    for axis in range(batch):
        size = op.dim(indices, axis, scalar=True)
        numbers = op.Range(np.array(0, np.int64), size, np.array(1, np.int64))
        positions = op.Reshape(numbers, [-1 if other == axis else 1 for other in range(rank)])
        one = op.Slice(op.Shape(indices), [0], [rank - 1])
        columns.append(op.Expand(positions, op.Concat(one, [1], axis=0)))
    return op.Concat(*columns, indices, axis=-1) if columns else indices


def _scatter_nd_by_rows(op: GradientBuilder, x: str, indices: str, grad: str, width: int) -> str:
    sizes = op.Slice(op.shape_of(x), [0], [width])
    # Row number of every index: positions times strides.
    wrapped = op.Mod(indices, sizes)
    strides = op.Concat(*[_product(op, sizes, axis + 1, width) for axis in range(width)], axis=0)
    rows = op.Reshape(op.reduce("ReduceSum", op.Mul(wrapped, strides), [-1], keepdims=0), [-1])
    columns = _product(op, op.shape_of(x), width, np.iinfo(np.int64).max)
    count = op.Shape(rows)
    updates = op.reshape_to(grad, op.Concat(count, columns, axis=0))
    return op.reshape_like(scatter_add_rows(op, _product(op, sizes, 0, width), rows, updates), x)


def _product(op: GradientBuilder, sizes: str, start: int, end: int) -> str:
    return op.reduce("ReduceProd", op.Slice(sizes, [start], [end]), None, keepdims=1)


@RULES.rule("ScatterElements")
def scatter_elements(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x with u at i along an axis: dx = dy with zeros at i, du = dy[i]
    axis = node.attribute("axis", 0)

    def read(name: str) -> str:
        return op.GatherElements(name, node.I(1), axis=axis)

    def write(target: str, values: str, reduction: str | None = None) -> str:
        return op.ScatterElements(target, node.I(1), values, axis=axis, reduction=reduction)

    return _scatter_gradients(op, node, grad, read, write)


@RULES.rule("ScatterND")
def scatter_nd(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x with u at i: dx = dy with zeros at i, du = dy[i]
    def read(name: str) -> str:
        return op.GatherND(name, node.I(1))

    def write(target: str, values: str, reduction: str | None = None) -> str:
        return op.ScatterND(target, node.I(1), values, reduction=reduction)

    return _scatter_gradients(op, node, grad, read, write)


def _scatter_gradients(
    op: GradientBuilder, node: RuleNode, grad: str, read: Callable, write: Callable
) -> tuple[str | None, str | None, str | None]:
    x, updates, y = node.I(0), node.I(2), node.O(0)
    reduction = node.attribute("reduction", "none")
    if reduction == "none":
        dx = write(grad, op.fill_like(updates)) if node.needs(0) else None
        return dx, None, read(grad) if node.needs(2) else None
    if reduction == "add":
        return grad, None, read(grad) if node.needs(2) else None
    if reduction == "mul":
        # dx = dy u1 u2 ..., du1 = dy x u2 ...
        dx = op.Mul(grad, write(op.fill_like(x, 1.0), updates, "mul")) if node.needs(0) else None
        return dx, None, _factor_gradient(op, x, updates, grad, read, write) if node.needs(2) else None
    # max and min: dy is shared among the values equal to y
    own = op.mask(op.Equal(x, y), grad)
    theirs = op.mask(op.Equal(updates, read(y)), grad)
    shared = op.Div(grad, write(own, theirs, "add"))
    return op.Mul(shared, own), None, op.Mul(read(shared), theirs)


@RULES.rule("TensorScatter")
def tensor_scatter(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x with u at the positions from i on along an axis: dx = dy with zeros there, du = dy there
    x, update = node.I(0), node.I(1)
    rank, zero, one = node.rank(x), *(np.array(number, np.int64) for number in (0, 1))
    axis = node.attribute("axis", -2) % rank
    steps = op.Range(zero, op.dim(update, axis, scalar=True), one)
    positions = op.Reshape(steps, [-1 if other == axis else 1 for other in range(rank)])
    if node.I(2):
        positions = op.Add(positions, op.Reshape(node.I(2), [-1] + [1] * (rank - 1)))
    if node.attribute("mode", "linear") == "circular":
        positions = op.Mod(positions, op.dim(x, axis))
    positions = op.Expand(positions, op.shape_of(update))
    dx = op.ScatterElements(grad, positions, op.fill_like(update), axis=axis) if node.needs(0) else None
    du = op.GatherElements(grad, positions, axis=axis) if node.needs(1) else None
    return [dx, du, None][: node.n_inputs]


def _factor_gradient(
    op: GradientBuilder, x: str, updates: str, grad: str, read: Callable, write: Callable
) -> str:
    """Return the gradient of factors; zeros are counted separately, as in ReduceProd."""
    zero = op.Equal(updates, 0.0)
    factors, zeros = op.Where(zero, 1.0, updates), op.mask(zero, grad)
    # Another factor of an element is zero if it has more zeros than the factor itself.
    alone = op.mask(op.Equal(read(write(op.fill_like(x), zeros, "add")), zeros), grad)
    product = read(op.Mul(grad, write(x, factors, "mul")))
    return op.Mul(op.Div(product, factors), alone)
