"""Gradients of Resize and Upsample."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from onnx import TensorProto

from ..decomposition import by_decomposition
from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet
from ..types.dimensions import is_static

__all__ = ["RULES"]

RULES = RuleSet("resampling")

#: Attributes that determine the positions read along an axis.
_READING = (
    "antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "mode", "nearest_mode",
)  # fmt: skip
_COORDINATES: dict[str, Callable] = {
    "align_corners": lambda i, scale, n, m: i * (n - 1) / max(m - 1, 1),
    "asymmetric": lambda i, scale, n, m: i / scale,
    "half_pixel": lambda i, scale, n, m: (i + 0.5) / scale - 0.5,
    "pytorch_half_pixel": lambda i, scale, n, m: (i + 0.5) / scale - 0.5 if m > 1 else i * 0.0,
    "tf_half_pixel_for_nn": lambda i, scale, n, m: (i + 0.5) / scale,
}
_NEAREST: dict[str, Callable] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


class _Axes:
    """Axes and scales of a Resize."""

    def __init__(self, node: RuleNode) -> None:
        self.node, self.rank = node, node.rank(node.I(0))
        self.listed = [axis % self.rank for axis in node.attribute("axes") or range(self.rank)]
        self.coordinates = node.attribute("coordinate_transformation_mode", "half_pixel")
        self.mode = node.attribute("mode", "nearest")
        self.scales, self.sizes = (node.I(i) if self._given(i) else "" for i in (2, 3))
        self.roi = node.I(1) if self.coordinates == "tf_crop_and_resize" else ""
        policy = node.attribute("keep_aspect_ratio_policy", "stretch")
        self.policy = policy if self.sizes and policy != "stretch" else None

    def _given(self, index: int) -> bool:
        name = self.node.I(index)
        return bool(name) and (self.node.shape(name) != (0,))

    def scale(self, axis: int) -> float | None:
        """Return the scale of an axis, or None if it is unknown."""
        index = self.listed.index(axis)
        values = self.node.constant(self.scales or self.sizes)
        if self.policy:
            known = self.kept_ratio()
            return None if known is None else known[1] / known[0]
        size = (self.node.shape(self.node.I(0)) or [None] * self.rank)[axis]
        if values is None:
            result = self.node.shape(self.node.O(0))
            size_after = None if result is None or self.scales else result[axis]
            same = size is not None and size == size_after
            return 1.0 if same else None
        if self.scales:
            return float(values[index])
        return int(values[index]) / size if isinstance(size, int) and size else None

    def kept_ratio(self) -> tuple[int, int] | None:
        """Return sizes before and after of the axis that sets the scale of all, None if they are unknown."""
        shape, after = self.node.shape(self.node.I(0)), self.node.constant(self.sizes)
        before = [shape[axis] for axis in self.listed] if shape else [None]
        if after is None or not all(isinstance(size, int) and size for size in before):
            return None
        pairs = zip(before, map(int, after), strict=True)
        pick = min if self.policy == "not_larger" else max
        return pick(pairs, key=lambda pair: Fraction(pair[1], pair[0]))

    def changed(self) -> list[int]:
        """Return the axes that are scaled or cropped."""
        return [axis for axis in self.listed if self.scale(axis) != 1 or self._cropped(axis)]

    def _cropped(self, axis: int) -> bool:
        if not self.roi or (self.mode != "nearest" and axis < self.rank - 2):
            return False
        roi, index = self.node.constant(self.roi), self.listed.index(axis)
        return roi is None or (roi[index], roi[index + len(self.listed)]) != (0, 1)


@RULES.rule("Resize")
def resize(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = M1 x M2' along two axes, and so on: dx = M1' dy M2. M is the operator applied to the identity
    axes = _Axes(node)
    changed = axes.changed()
    copies = [_copies(axes, axis) for axis in changed]
    if changed and all(copies):
        dx = _sum_copies(op, node, grad, dict(zip(changed, copies, strict=True)))
    else:
        dx = grad
        for axis in changed:
            dx = _apply(op, dx, _matrix(op, axes, axis), axis, axes.rank)
    return [op.with_type(dx, node.I(0)), *[None] * (node.n_inputs - 1)]


def _copies(axes: _Axes, axis: int) -> int:
    """Return how often an axis repeats every element, or zero if it is resampled in another way."""
    node = axes.node
    shape, result, scale = node.shape(node.I(0)), node.shape(node.O(0)), axes.scale(axis)
    if axes.mode != "nearest" or scale is None or axes.coordinates not in _COORDINATES:
        return 0
    if shape is None or result is None or [*map(type, (shape[axis], result[axis]))] != [int, int]:
        return 0
    n, m = shape[axis], result[axis]
    positions = _COORDINATES[axes.coordinates](np.arange(m), scale, n, m)
    read = np.clip(_NEAREST[node.attribute("nearest_mode", "round_prefer_floor")](positions), 0, n - 1)
    plain = n > 0 and m % n == 0 and (read == np.arange(m) // (m // n)).all()
    return m // n if plain else 0


def _sum_copies(op: GradientBuilder, node: RuleNode, grad: str, copies: dict[int, int]) -> str:
    shape = node.shape(node.I(0))
    others = [dim for axis, dim in enumerate(shape) if axis not in copies]
    if sum(not isinstance(dim, int) for dim in others) > 1 or 0 in others:
        parts = [op.dim(node.I(0), axis) for axis in range(len(shape))]
        sizes = [[part, [copies[axis]]] if axis in copies else [part] for axis, part in enumerate(parts)]
        split = op.reshape_to(grad, op.Concat(*(size for part in sizes for size in part), axis=0))
    else:
        dims = [[dim, copies[axis]] if axis in copies else [dim] for axis, dim in enumerate(shape)]
        split = op.Reshape(grad, [d if isinstance(d, int) else -1 for dim in dims for d in dim])
    summed = [axis + 1 + index for index, axis in enumerate(sorted(copies))]
    return op.reduce("ReduceSum", split, summed, keepdims=0)


def _matrix(op: GradientBuilder, axes: _Axes, axis: int) -> str:
    """Return the matrix (n, m) of an axis: the operator applied to the rows of the identity."""
    node, index = axes.node, axes.listed.index(axis)
    size = op.dim(node.I(0), axis)
    shape = op.shape(node.I(0))
    square = [shape[axis]] * 2 if is_static((shape[axis],)) else op.Concat(size, size, axis=0)
    identity = op.EyeLike(op.fill(op.constant(square) if isinstance(square, list) else square))
    # Kernels of onnxruntime require the axis in the middle of four.
    image = op.reshape_to(identity, op.Concat(size, [1], size, [1], axis=0))
    options = {name: node.attribute(name) for name in _READING}
    roi = scales = sizes = ""
    if axes.policy:
        return _matrix_of_policy(op, axes, axis, image, options)
    if axes.roi:
        ends = [op.Gather(axes.roi, np.array([p])) for p in (index, index + len(axes.listed))]
        zero, one = (np.full(2, value, op.dtype(axes.roi) or np.float32) for value in (0, 1))
        roi = op.Concat(zero, ends[0], zero[:1], one, ends[1], one[:1], axis=0)
    if axes.scales:
        ones = np.ones(2, np.float32)
        scales = op.Concat(ones, op.Gather(axes.scales, np.array([index])), ones[:1], axis=0)
    else:
        sizes = op.Concat(size, [1], op.Gather(axes.sizes, np.array([index])), [1], axis=0)
    read = op.Resize(image, roi, scales, sizes, extrapolation_value=0.0, **options)
    return op.set_type(op.Squeeze(read, [1, 3]), op.elem_type(identity) or 1, (shape[axis], None))


def _matrix_of_policy(
    op: GradientBuilder,
    axes: _Axes,
    axis: int,
    image: str,
    options: dict[str, None | int | str] | dict[str, None | str],
) -> str:
    """Return the matrix of an axis that has the scale of another one: that one becomes the last axis."""
    node, place = axes.node, axes.listed.index(axis)
    known = axes.kept_ratio()
    if known is not None:  # with fewer elements of the same ratio
        divisor = math.gcd(*known)
        before, after = (np.array([size // divisor]) for size in known)
    else:
        sizes = op.Gather(op.Shape(node.I(0)), np.array(axes.listed), axis=0)
        ratios = op.Div(*(op.Cast(name, to=TensorProto.DOUBLE) for name in (axes.sizes, sizes)))
        limiting = getattr(op, "ArgMin" if axes.policy == "not_larger" else "ArgMax")(ratios, axis=0)
        before, after = (op.Gather(name, limiting, axis=0) for name in (sizes, axes.sizes))
    wide = op.Expand(image, op.Concat(np.ones(3, np.int64), before, axis=0))
    roi = ""
    if axes.roi:
        zero, one = (np.full(1, value, op.dtype(axes.roi) or np.float32) for value in (0, 1))
        ends = [op.Gather(axes.roi, np.array([p])) for p in (place, place + len(axes.listed))]
        roi = op.Concat(ends[0], zero, ends[1], one, axis=0)
    sizes = op.Concat(op.Gather(axes.sizes, np.array([place])), after, axis=0)
    options |= {"axes": [2, 3], "keep_aspect_ratio_policy": axes.policy, "extrapolation_value": 0.0}
    read = op.Gather(op.Resize(wide, roi, "", sizes, **options), np.array(0), axis=3)
    shape = op.shape(node.I(0))
    return op.set_type(op.Squeeze(read, [1]), op.elem_type(image) or 1, (shape[axis], None))


def _apply(op: GradientBuilder, grad: str, matrix: str, axis: int, rank: int) -> str:
    """Multiply an axis of length m of a gradient by a matrix (n, m)."""
    if axis == rank - 2:
        return op.MatMul(matrix, grad)
    if axis == rank - 1:
        return op.MatMul(grad, op.Transpose(matrix, perm=[1, 0]))
    last = [*range(axis), *range(axis + 1, rank), axis]
    moved = op.MatMul(op.Transpose(grad, perm=last), op.Transpose(matrix, perm=[1, 0]))
    return op.Transpose(moved, perm=[*range(axis), rank - 1, *range(axis, rank - 1)])


@RULES.rule("Upsample")
@by_decomposition
def upsample(op: GradientBuilder, node: RuleNode) -> str:
    # y = Resize(x) at the positions i / scale
    scales = node.input_name(1) or op.constant(np.array(node.attribute("scales"), np.float32))
    options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return op.Resize(node.input_name(0), "", scales, mode=node.attribute("mode", "nearest"), **options)
