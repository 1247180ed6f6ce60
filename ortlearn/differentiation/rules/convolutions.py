"""Gradients of convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet
from ..types.dimensions import is_static

__all__ = ["RULES", "Window", "input_gradient", "window_of", "with_space"]

RULES = RuleSet("convolutions")

_INT_MAX = np.iinfo(np.int64).max


class Window:
    """Kernel, strides, dilations and pads of a window, with one number per spatial axis."""

    def __init__(
        self,
        kernel: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        before: Sequence[int],
        after: Sequence[int],
        group: int = 1,
    ) -> None:
        self.kernel, self.strides, self.dilations = list(kernel), list(strides), list(dilations)
        self.before, self.after, self.group = list(before), list(after), group

    @property
    def pads(self) -> list[int]:
        return [*self.before, *self.after]


def window_of(
    node: RuleNode, kernel: list[int], source: Sequence[Any], result: Sequence[Any]
) -> Window | None:
    """Return the window of a convolution or of a pooling, from the shapes before and after it."""
    space = len(kernel)
    strides = node.attribute("strides") or [1] * space
    dilations = node.attribute("dilations") or [1] * space
    pads = node.attribute("pads") or [0] * (2 * space)
    before, after = pads[:space], pads[space:]
    auto_pad = node.attribute("auto_pad", "NOTSET")
    if auto_pad == "VALID":
        before, after = [0] * space, [0] * space
    elif auto_pad.startswith("SAME"):
        before, after = _same_pads(node, kernel, strides, dilations, source, result, auto_pad)
    return Window(kernel, strides, dilations, before, after, node.attribute("group", 1))


def _same_pads(
    node: RuleNode,
    kernel: list[int],
    strides: list[int],
    dilations: list[int],
    source: Sequence[Any],
    result: Sequence[Any],
    auto_pad: str,
) -> tuple[list[int], list[int]] | None:
    if source is None or result is None or not is_static((*source[2:], *result[2:])):
        raise node.error(f"auto_pad={auto_pad} needs known spatial dimensions")
    before, after = [], []
    for k, s, d, i, o in zip(kernel, strides, dilations, source[2:], result[2:], strict=True):
        total = (o - 1) * s + d * (k - 1) + 1 - i
        if total < -1:
            raise node.error(
                f"auto_pad={auto_pad} skips {-total} positions between windows, at different ends in "
                "different versions of onnxruntime; use pads instead"
            )
        total = max(0, total)
        small, large = total // 2, total - total // 2
        before.append(small if auto_pad == "SAME_UPPER" else large)
        after.append(large if auto_pad == "SAME_UPPER" else small)
    return before, after


def kernel_of(node: RuleNode, weight: str) -> list[int]:
    """Return the spatial shape of a kernel."""
    kernel = node.attribute("kernel_shape") or (node.shape(weight) or ())[2:]
    if not kernel or not is_static(tuple(kernel)):
        raise node.error("the shape of the kernel must be known")
    return list(kernel)


def input_gradient(op: GradientBuilder, grad: str, weight: str, window: Window, like: str) -> str:
    """Return the gradient of the input of a convolution, a transposed convolution of that of its output."""
    space = len(window.kernel)
    source, result = op.shape(like), op.shape(grad)
    options = {"strides": window.strides, "dilations": window.dilations, "group": window.group}
    options["kernel_shape"] = window.kernel
    known = source is not None and result is not None
    if known and is_static((*source[2:], *result[2:])):
        pads, extra = _crop(window, source[2:], result[2:])
        output_padding = extra if any(extra) else None
        transposed = op.ConvTranspose(grad, weight, pads=pads, output_padding=output_padding, **options)
        return op.with_type(transposed, like)
    # The whole padded space, then a slice of the size of the input.
    whole = op.ConvTranspose(grad, weight, **options)
    axes = op.constant(list(range(2, 2 + space)))
    size = op.Slice(op.Shape(like), [2], [2 + space])
    before = op.constant(np.array(window.before, dtype=np.int64))
    end = op.Add(size, before)
    short = op.Max(op.Sub(end, op.Slice(op.Shape(whole), [2], [2 + space])), np.array([0], np.int64))
    padded = op.Pad(whole, op.Concat([0] * (2 + space), [0, 0], short, axis=0))
    return op.Slice(padded, before, end, axes)


def _crop(window: Window, source: Sequence[Any], result: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Return the pads of the transposed convolution, and its output_padding."""
    after, extra = [], []
    dims = zip(window.kernel, window.strides, window.dilations, window.before, source, result, strict=True)
    for k, s, d, before, size, out in dims:
        surplus = (out - 1) * s + d * (k - 1) + 1 - before - size
        after.append(max(surplus, 0))
        extra.append(max(-surplus, 0))
    return [*window.before, *after], extra


def weight_gradient(op: GradientBuilder, x: str, grad: str, window: Window, weight: str) -> str:
    """Return the gradient of the kernel: the input convolved with the gradient of the output."""
    x, grad = _with_an_element(op, x), _with_an_element(op, grad)
    group, space = window.group, list(range(2, 2 + len(window.kernel)))
    left = op.transpose(x, [1, 0, *space]) if group == 1 else _by_group(op, x, group)
    right = op.transpose(grad, [1, 0, *space])
    kernel = (op.shape(grad) or ())[2:]
    options: dict[str, Any] = {"strides": window.dilations, "dilations": window.strides, "pads": window.pads}
    options["kernel_shape"] = list(kernel) if kernel and is_static(kernel) else None
    full = op.Conv(left, right, group=group, **options)
    # The window may fit more often at the end of the space than in the convolution.
    cut = op.Slice(full, [0] * len(space), window.kernel, space) if _may_exceed(op, x, grad, window) else full
    return op.with_type(op.transpose(cut, [1, 0, *space]), weight)


def _with_an_element(op: GradientBuilder, name: str) -> str:
    """Return an empty batch padded by a sample of zeros: Conv without channels does not terminate."""
    shape = op.shape(name)
    if isinstance(shape[0], int) and shape[0] > 0:
        return name
    missing = op.Cast(op.Equal(op.dim(name, 0), 0), to=TensorProto.INT64)
    pads = op.Concat([0] * len(shape), missing, [0] * (len(shape) - 1), axis=0)
    return op.with_type(op.Pad(name, pads), name, [None, *shape[1:]])


def _by_group(op: GradientBuilder, name: str, group: int) -> str:
    """Exchange channels and batch within groups: from (N, C, ...) to (C / group, group N, ...)."""
    rank = op.rank(name)
    parts = op.Reshape(name, with_space(op, name, [0, group, -1]))
    moved = op.Transpose(parts, perm=[2, 1, 0, *range(3, rank + 1)])
    return op.Reshape(moved, with_space(op, name, [0, -1]))


def with_space(op: GradientBuilder, name: str, first: list[int]) -> np.ndarray | str:
    """Return a shape that ends with the spatial dimensions of a tensor."""
    space = op.shape(name)[2:]
    if is_static(space):
        return np.array([*first, *space], dtype=np.int64)
    return op.Concat(first, op.Slice(op.Shape(name), [2], [2 + len(space)]), axis=0)


def _may_exceed(op: GradientBuilder, x: str, grad: str, window: Window) -> bool:
    source, result = op.shape(x), op.shape(grad)
    if source is None or result is None:
        return True
    for k, s, d, before, after, size, out in zip(
        window.kernel, window.strides, window.dilations, window.before, window.after,
        source[2:], result[2:], strict=True,
    ):  # fmt: skip
        if not isinstance(size, int) or not isinstance(out, int):
            if s > 1 or d > 1:
                return True
        elif (size + before + after - (out - 1) * s - 1) // d + 1 != k:
            return True
    return False


@RULES.rule("Conv")
def conv(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = w * x + b: dx = transposed convolution of dy and w, dw = x * dy, db = sum of dy over batch and space
    x, weight = node.I(0), node.I(1)
    window = window_of(node, kernel_of(node, weight), node.shape(x), node.shape(node.O(0)))
    dx = input_gradient(op, grad, weight, window, x) if node.needs(0) else None
    dw = weight_gradient(op, x, grad, window, weight) if node.needs(1) else None
    return [dx, dw, _bias(op, node, grad)][: node.n_inputs]


@RULES.rule("ConvTranspose")
def conv_transpose(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = transposed convolution of x and w, plus b: dx = w * dy, dw = dy * x,
    # db = sum of dy over batch and space
    x, weight = node.I(0), node.I(1)
    window = _transposed_window(node, kernel_of(node, weight))
    dx = None
    if node.needs(0):
        options = {"strides": window.strides, "dilations": window.dilations, "pads": window.pads}
        dx = op.Conv(grad, weight, group=window.group, kernel_shape=window.kernel, **options)
    dw = weight_gradient(op, grad, x, window, weight) if node.needs(1) else None
    return [dx, dw, _bias(op, node, grad)][: node.n_inputs]


def _transposed_window(node: RuleNode, kernel: list[int]) -> Window:
    """Return the window of the convolution that belongs to a transposed one."""
    window = window_of(node, kernel, node.shape(node.O(0)), node.shape(node.I(0)))
    wanted = node.attribute("output_shape")
    if wanted is None:
        return window
    source = node.shape(node.I(0))
    extra = node.attribute("output_padding") or [0] * len(kernel)
    upper = node.attribute("auto_pad", "NOTSET") == "SAME_UPPER"
    for axis, size in enumerate(wanted[-len(kernel) :]):
        k, s, d = window.kernel[axis], window.strides[axis], window.dilations[axis]
        total = max(0, s * (source[axis + 2] - 1) + extra[axis] + (k - 1) * d + 1 - size)
        half = math.ceil(total / 2) if not upper else total // 2
        window.before[axis], window.after[axis] = half, total - half
    return window


def _bias(op: GradientBuilder, node: RuleNode, grad: str) -> str | None:
    if not node.needs(2):
        return None
    axes = [0, *range(2, node.rank(node.I(0)))]
    return op.reduce("ReduceSum", grad, axes, keepdims=0)
