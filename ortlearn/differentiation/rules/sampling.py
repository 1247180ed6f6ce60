"""Gradients of GridSample, AffineGrid and RoiAlign."""

from __future__ import annotations

import itertools

import numpy as np
from onnx import TensorProto

from ..decomposition import by_decomposition
from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("sampling")

#: Names of the modes before opset 20.
_MODES = {"bilinear": "linear", "bicubic": "cubic"}
#: The parameter of cubic convolution that the specification of GridSample gives.
_CUBIC = -0.75
#: Below all values of an image; the maximum of a bin without points is less.
_NO_POINT = -1e38


@by_decomposition
def _grid_sample(op: GradientBuilder, node: RuleNode) -> str:
    # y = sum over neighbours of weights that depend on the position, times x there
    x, grid = node.input_name(0), node.input_name(1)
    space = node.rank(x) - 2
    mode = node.attribute("mode", "linear")
    mode = _MODES.get(mode, mode)
    sampler = _Sampler(op, node, x, space)
    # The last axis of the grid is in the order x, y, z: the last axis of space first.
    positions = [op.Gather(grid, np.array(space - 1 - axis), axis=space + 1) for axis in range(space)]
    taps = [sampler.taps(position, axis, mode) for axis, position in enumerate(positions)]
    terms = []
    for chosen in itertools.product(*taps):
        values = sampler.read([index for index, _ in chosen])
        for weight in filter(None, (weight for _, weight in chosen)):
            values = op.Mul(values, op.Unsqueeze(weight, [1]))
        terms.append(values)
    return op.Sum(*terms) if len(terms) > 1 else terms[0]


RULES.rule("GridSample")(_grid_sample)
RULES.rule("GridSample", domain="com.microsoft")(_grid_sample)


class _Sampler:
    """Read an image (batch, channels, *space) at integer positions, with the padding of a node."""

    def __init__(self, op: GradientBuilder, node: RuleNode, x: str, space: int) -> None:
        self.op, self.space = op, space
        self.padding = node.attribute("padding_mode", "zeros")
        self.corners = bool(node.attribute("align_corners", 0))
        self.sizes = [op.Gather(op.Shape(x), np.array(2 + axis)) for axis in range(space)]
        self.lengths = [op.cast_like(size, x) for size in self.sizes]
        self.batch = op.Slice(op.Shape(x), [0], [2])
        flat = op.Reshape(x, op.Concat(self.batch, [-1], axis=0))
        self.flat = op.with_type(flat, x, (None, None, None))

    def taps(self, position: str, axis: int, mode: str) -> list[tuple[str, str | None]]:
        """Return the integer positions read for a position in [-1, 1], each with its weight or None."""
        op, length = self.op, self.lengths[axis]
        if self.corners:
            t = op.Mul(op.Mul(op.Add(position, 1.0), 0.5), op.Sub(length, 1.0))
        else:
            t = op.Sub(op.Mul(op.Mul(op.Add(position, 1.0), 0.5), length), 0.5)
        if mode == "nearest":
            return [(op.Round(self.fold(t, axis)), None)]
        t = self.fold(t, axis) if mode == "linear" else t
        low = op.Floor(t)
        rest = op.Sub(t, low)
        if mode == "linear":
            return [(low, op.Sub(1.0, rest)), (op.Add(low, 1.0), rest)]
        offsets = [op.Add(rest, 1.0), rest, op.Sub(1.0, rest), op.Sub(2.0, rest)]
        positions = [op.Add(low, float(i - 1)) if i != 1 else low for i in range(4)]
        weights = [self._cubic(distance, i) for i, distance in enumerate(offsets)]
        return [(self.fold(p, axis), weight) for p, weight in zip(positions, weights, strict=True)]

    def _cubic(self, distance: str, tap: int) -> str:
        """Return the weight of cubic convolution."""
        # Keys, Cubic convolution interpolation, IEEE Trans. ASSP 29 (1981), with a free parameter a
        op, a = self.op, _CUBIC
        if tap in (1, 2):
            factors = (a + 2, -(a + 3), 0.0, 1.0)
        else:
            factors = (a, -5 * a, 8 * a, -4 * a)
        value = op.Mul(distance, factors[0])
        for factor in factors[1:3]:
            value = op.Mul(op.Add(value, factor), distance)
        return op.Add(value, factors[3])

    def fold(self, t: str, axis: int) -> str:
        """Return a position moved into the image according to the padding."""
        op, last = self.op, _last(self.op, self.lengths[axis])
        if self.padding == "border":
            return op.Max(op.Min(t, last), 0.0)
        if self.padding == "reflection":
            low = 0.0 if self.corners else -0.5
            span = last if self.corners else self.lengths[axis]
            # Reflections have the period 2 span.
            away = op.Abs(op.Sub(t, low))
            span = op.Max(span, 1e-6)
            turns = op.Floor(op.Div(away, span))
            rest = op.Sub(away, op.Mul(turns, span))
            odd = op.Sub(turns, op.Mul(op.Floor(op.Mul(turns, 0.5)), 2.0))
            back = op.Sub(span, rest)
            folded = op.Add(op.Where(op.Greater(odd, 0.5), back, rest), low)
            return op.Max(op.Min(folded, last), 0.0) if not self.corners else folded
        return t

    def read(self, positions: list[str]) -> str:
        """Return the image at integer positions, zero outside of it."""
        op = self.op
        index, inside = None, None
        for axis, position in enumerate(positions):
            last = _last(op, self.lengths[axis])
            clipped = op.Max(op.Min(position, last), 0.0)
            within = op.Equal(clipped, position)
            inside = within if inside is None else op.And(inside, within)
            whole = op.Cast(clipped, to=TensorProto.INT64)
            index = whole if index is None else op.Add(op.Mul(index, self.sizes[axis]), whole)
        shape = op.Shape(index)
        flat = op.Reshape(index, op.Concat(op.Slice(shape, [0], [1]), [1, -1], axis=0))
        wide = op.Expand(flat, op.Concat(self.batch, [1], axis=0))
        values = op.GatherElements(self.flat, wide, axis=2)
        values = op.Reshape(values, op.Concat(self.batch, op.Slice(shape, [1], [1 + self.space]), axis=0))
        return op.Where(op.Unsqueeze(inside, [1]), values, 0.0)


def _last(op: GradientBuilder, length: str) -> str:
    """Return the last position of an axis."""
    return op.Sub(length, 1.0)


@RULES.rule("AffineGrid")
def affine_grid(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = (g, 1) theta' with g the grid of the identity, dtheta = dy' (g, 1)
    theta = node.I(0)
    space = (node.shape(theta) or (None, None))[1]
    space = space if isinstance(space, int) else node.rank(node.O(0)) - 2
    identity = np.eye(space, space + 1, dtype=op.float_dtype)
    corners = node.attribute("align_corners", 0)
    grid = op.AffineGrid(op.Expand(identity, op.Shape(theta)), node.I(1), align_corners=corners)
    points, slopes = (op.Reshape(name, [0, -1, space]) for name in (grid, grad))
    one = op.Add(op.Mul(op.Slice(points, [0], [1], [2]), 0.0), 1.0)
    return op.MatMul(op.Transpose(slopes, perm=[0, 2, 1]), op.Concat(points, one, axis=2)), None


@RULES.rule("RoiAlign")
@by_decomposition
def roi_align(op: GradientBuilder, node: RuleNode) -> str:
    # y = mean over points of a bin of x, with linear interpolation; for the maximum, that of the terms of the
    # interpolation of all points, as in onnx's reference implementation and in onnxruntime
    x, rois, batch = (node.input_name(i) for i in range(3))
    default = "half_pixel" if op.opset >= 16 else "output_half_pixel"
    half = node.attribute("coordinate_transformation_mode", default) == "half_pixel"
    scale, ratio = node.attribute("spatial_scale", 1.0), node.attribute("sampling_ratio", 0)
    positions = []
    for axis, name in ((2, "output_height"), (3, "output_width")):
        start, end = (
            op.Sub(op.Mul(op.Gather(rois, np.array(i), axis=1), scale), 0.5 if half else 0.0)
            for i in (3 - axis, 5 - axis)
        )
        bins, extent = node.attribute(name, 1), op.Sub(end, start)
        extent = extent if half else op.Max(extent, 1.0)
        positions.append(_bin_points(op, start, op.Div(extent, float(bins)), bins, ratio, x))
    rows, columns = positions
    y, x_ = (op.Unsqueeze(points, axes) for (points, _), axes in ((rows, [3, 4]), (columns, [1, 2])))
    terms, inside = _linear_terms(op, x, batch, y, x_)
    weights = op.Mul(op.Unsqueeze(rows[1], [3, 4]), op.Unsqueeze(columns[1], [1, 2]))
    weights = op.Unsqueeze(weights, [5])
    # (roi, bins, points, bins, points, channels): the mean, or the maximum, over both axes of points.
    if node.attribute("mode", "avg") == "avg":
        weighted = op.Mul(op.Where(inside, op.Sum(*terms), 0.0), weights)
        pooled = op.reduce("ReduceSum", weighted, [2, 4], keepdims=0)
    else:
        read = op.Where(inside, op.Max(*terms), 0.0)
        read = op.Where(op.Greater(weights, 0.0), read, 2 * _NO_POINT)
        largest = op.reduce("ReduceMax", read, [2, 4], keepdims=0)
        pooled = op.Where(op.Less(largest, _NO_POINT), 0.0, largest)
    return op.Transpose(pooled, perm=[0, 3, 1, 2])


def _bin_points(op: GradientBuilder, start: str, size: str, bins: int, ratio: int, x: str) -> tuple[str, str]:
    """Return positions (roi, bin, point) and their weights, one over the number of points."""
    wide = op.Unsqueeze(start, [1, 2]), op.Unsqueeze(size, [1, 2])
    number = np.arange(bins).reshape(1, -1, 1).astype(op.float_dtype)
    if ratio > 0:
        points = ((np.arange(ratio) + 0.5) / ratio).reshape(1, 1, -1).astype(op.float_dtype)
        weights = op.Expand(1 / ratio, op.Concat(op.Shape(start), [bins, ratio], axis=0))
        return op.Add(wide[0], op.Mul(wide[1], number + points)), weights
    # The number of points is that of the pixels in a bin, which depends on the region.
    # One point without a weight remains if all regions are empty: the maximum of no elements is an error.
    count = op.Ceil(wide[1])
    counts = op.Concat(op.Reshape(count, [-1]), np.ones(1, op.float_dtype), axis=0)
    most = op.Cast(op.reduce("ReduceMax", counts, None, keepdims=0), to=TensorProto.INT64)
    steps = op.cast_like(op.Range(np.array(0, np.int64), most, np.array(1, np.int64)), x)
    points = op.Div(op.Add(steps, 0.5), op.Max(count, 1.0))
    weights = op.Where(op.Less(steps, count), op.Reciprocal(op.Max(count, 1.0)), 0.0)
    weights = op.Expand(weights, op.Concat(op.Shape(start), [bins, 1], axis=0))
    return op.Add(wide[0], op.Mul(wide[1], op.Add(points, number))), weights


def _linear_terms(op: GradientBuilder, x: str, batch: str, y: str, x_: str) -> tuple[list[str], str]:
    """Return the terms of an interpolated image, channels last, and whether positions are inside.

    Values are zero more than one pixel outside.
    """
    shape = op.Shape(x)
    channels, height, width = (op.Gather(shape, np.array(axis)) for axis in (1, 2, 3))
    last = op.Concat([-1], op.unsqueeze(channels, [0]), axis=0)
    rows = op.with_type(op.Reshape(op.Transpose(x, perm=[0, 2, 3, 1]), last), x, (None, None))
    first = op.Mul(op.Unsqueeze(op.Cast(batch, to=TensorProto.INT64), [1, 2, 3, 4]), op.Mul(height, width))
    (y_low, y_high, y_rest, y_in), (x_low, x_high, x_rest, x_in) = (
        _neighbours(op, position, op.cast_like(size, x)) for position, size in ((y, height), (x_, width))
    )
    terms = []
    for (row, row_weight), (column, column_weight) in itertools.product(
        ((y_low, op.Sub(1.0, y_rest)), (y_high, y_rest)), ((x_low, op.Sub(1.0, x_rest)), (x_high, x_rest))
    ):
        index = op.Add(first, op.Add(op.Mul(row, width), column))
        weight = op.Unsqueeze(op.Mul(row_weight, column_weight), [5])
        terms.append(op.Mul(op.Gather(rows, index, axis=0), weight))
    return terms, op.Unsqueeze(op.And(y_in, x_in), [5])


def _neighbours(op: GradientBuilder, position: str, length: str) -> tuple[str, str, str, str]:
    """Return the integers around a position, its distance from the first, and whether it is inside."""
    inside = op.And(op.GreaterOrEqual(position, -1.0), op.LessOrEqual(position, length))
    last = op.Sub(length, 1.0)
    clipped = op.Max(op.Min(position, last), 0.0)
    low = op.Floor(clipped)
    high = op.Min(op.Add(low, 1.0), last)
    return (
        op.Cast(low, to=TensorProto.INT64),
        op.Cast(high, to=TensorProto.INT64),
        op.Sub(clipped, low),
        inside,
    )
