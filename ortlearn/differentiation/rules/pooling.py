"""Gradients of pooling operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..decomposition import by_decomposition
from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet
from ..types.dimensions import is_static
from .convolutions import Window, input_gradient, window_of, with_space
from .gather_scatter import scatter_add_flat

__all__ = ["RULES"]

RULES = RuleSet("pooling")

_INT_MAX = np.iinfo(np.int64).max


@RULES.rule("GlobalAveragePool")
def global_average_pool(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = mean of x over space, dx = dy / n
    x = node.I(0)
    count = op.size_along(x, list(range(2, node.rank(x))), op.float_dtype)
    return op.expand_like(op.Div(grad, count), x)


@RULES.rule("GlobalMaxPool")
def global_max_pool(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = max of x over space, dx = dy shared among the elements equal to y
    x = node.I(0)
    chosen = op.mask(op.Equal(x, node.O(0)), grad)
    ties = op.reduce("ReduceSum", chosen, list(range(2, node.rank(x))))
    return op.Mul(chosen, op.Div(grad, ties))


@RULES.rule("AveragePool")
def average_pool(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = mean of x under a window, dx = transposed convolution of dy / n and ones
    x = node.I(0)
    rank, kernel = node.rank(x), node.attribute("kernel_shape")
    shape, result = node.shape(x), node.shape(node.O(0)) or (None,) * rank
    window = window_of(node, kernel, shape, result)
    counts = _counts(op, node, window, shape, result)
    if node.attribute("ceil_mode", 0) and node.attribute("count_include_pad", 0):
        # The divisor depends on the version of onnxruntime: it is determined by a mean of ones.
        ones = op.constant(np.ones((1, 1, *shape[2:]), dtype=op.float_dtype))
        names = "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides".split()
        means = op.AveragePool(ones, **{name: node.attribute(name) for name in names})
        scaled = op.Mul(grad, op.Div(means, counts))
    else:
        scaled = op.Div(grad, counts)
    scaled = op.with_type(scaled, grad, result)
    # Every channel of every sample is a sample with one channel.
    single = op.with_type(op.Reshape(x, with_space(op, x, [-1, 1])), x, [None, 1, *shape[2:]])
    flat = op.with_type(op.Reshape(scaled, with_space(op, scaled, [-1, 1])), grad, [None, 1, *result[2:]])
    ones = op.constant(np.ones((1, 1, *kernel), dtype=op.float_dtype))
    return op.reshape_like(input_gradient(op, flat, ones, window, single), x)


def _counts(
    op: GradientBuilder, node: RuleNode, window: Window, shape: Sequence[Any], result: Sequence[Any]
) -> float | np.ndarray | None:
    """Return the number of elements that each window averages, without padding if sizes are rounded up."""
    rounded_up = node.attribute("ceil_mode", 0)
    if not rounded_up and (node.attribute("count_include_pad", 0) or not any(window.pads)):
        return float(math.prod(window.kernel))
    source, result = shape[2:], result[2:]
    if not is_static((*source, *result)):
        raise node.error("the spatial dimensions must be known, as some windows lie partly outside")
    counts = np.ones((1, 1, *result), dtype=op.float_dtype)
    for axis, size in enumerate(source):
        starts = np.arange(result[axis]) * window.strides[axis] - window.before[axis]
        positions = starts[:, None] + np.arange(window.kernel[axis]) * window.dilations[axis]
        inside = ((positions >= 0) & (positions < size)).sum(axis=1)
        if not inside.all():
            raise node.error("a window is completely outside of the input")
        counts *= inside.reshape([-1 if other == axis + 2 else 1 for other in range(counts.ndim)])
    return counts


@RULES.rule("MaxPool")
def max_pool(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x at the position i of the largest under a window, dx at i += dy
    x = node.I(0)
    if node.attribute("storage_order", 0):
        names = "auto_pad ceil_mode dilations kernel_shape pads strides".split()
        options = {name: node.attribute(name) for name in names}
        _, positions = op.MaxPool(x, n_outputs=2, **options)
    else:
        positions = node.require_output(1)
    return scatter_add_flat(op, x, positions, grad)


@RULES.rule("GlobalLpPool")
@by_decomposition
def global_lp_pool(op: GradientBuilder, node: RuleNode) -> str:
    # y = (sum of |x|^p over space)^(1/p)
    x, order = node.input_name(0), node.attribute("p", 2)
    axes = list(range(2, node.rank(x)))
    return _root(op, op.reduce("ReduceSum", op.Pow(op.Abs(x), float(order)), axes), order)


@RULES.rule("LpPool")
@by_decomposition
def lp_pool(op: GradientBuilder, node: RuleNode) -> str:
    # y = (sum of |x|^p under a window)^(1/p); a convolution of every channel with ones sums them
    x, order, kernel = node.input_name(0), node.attribute("p", 2), node.attribute("kernel_shape")
    if node.attribute("ceil_mode", 0):
        raise node.error("ceil_mode=1 has no gradient rule; use pads instead")
    options = {name: node.attribute(name) for name in ("auto_pad", "dilations", "pads", "strides")}
    powers = op.Pow(op.Abs(x), float(order))
    node.rank(x)
    single = op.Reshape(powers, with_space(op, x, [-1, 1]))
    sums = op.Conv(single, op.constant(np.ones((1, 1, *kernel), dtype=op.float_dtype)), **options)
    first = op.Slice(op.Shape(x), [0], [2])
    sums = op.Reshape(sums, op.Concat(first, op.Slice(op.Shape(sums), [2], [_INT_MAX]), axis=0))
    return _root(op, sums, order)


def _root(op: GradientBuilder, sums: str, order: int) -> str:
    """Write a root whose derivative at zero is zero."""
    if order == 1:
        return sums
    nothing = op.Equal(sums, 0.0)
    return op.Where(nothing, 0.0, op.Pow(op.Where(nothing, 1.0, sums), 1 / order))


@RULES.rule("MaxUnpool")
def max_unpool(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = zeros with x at the positions i, dx = dy at i
    return [op.Gather(op.Reshape(grad, [-1]), node.I(1), axis=0), *[None] * (node.n_inputs - 1)]
