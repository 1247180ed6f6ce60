"""Split, Slice and Pad."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
from onnx import NodeProto

from ...graphs import GraphBuilder
from ...graphs.nodes import attributes_of
from .gradient_path import GradientPath

__all__ = ["RULES"]


def split(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # one slice per used output
    used = [name for name in node.output if name and name in path.read]
    if len(used) == len(node.output):
        return False
    axis = attributes_of(node).get("axis", 0)
    sizes = _split_sizes(node, op, path, axis)
    if sizes is None:
        return False
    ends = [0, *accumulate(sizes)]
    for name, (start, end) in zip(node.output, pairwise(ends), strict=True):
        if name:
            op.Slice(node.input[0], [start], [end], [axis], outputs=[name])
    return True


def _split_sizes(node: NodeProto, op: GraphBuilder, path: GradientPath, axis: int) -> list[int] | None:
    if len(node.input) > 1 and node.input[1]:
        known = path.value(node.input[1])
        return None if known is None else known.tolist()
    shape = op.shape(node.input[0])
    length = shape[axis] if shape is not None else None
    if not isinstance(length, int):
        return None
    size = -(-length // len(node.output))
    return [min(size, length - size * index) for index in range(len(node.output))]


def backward_slice(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # the builder's kernel fails for negative steps: gather the indices, axis by axis
    bounds = [path.value(name) for name in node.input[1:]]
    if len(node.input) < 5 or bounds[3] is None or (bounds[3] > 0).all():
        return False
    x, shape = node.input[0], op.shape(node.input[0])
    if node.input[3] == "" and bounds[0] is not None:
        bounds[2] = np.arange(len(bounds[0]))
    numbers = [np.ravel(bound).tolist() for bound in bounds if bound is not None]
    if shape is None or len(numbers) < 4:
        return False
    starts, ends, axes, steps = numbers
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        length = shape[axis]
        if step > 0:
            x = op.Slice(x, [start], [end], [axis], [step])
        elif isinstance(length, int):
            x = op.Gather(x, _reversed_indices(start, end, step, length), axis=axis)
        else:
            return False
    op.Identity(x, outputs=[node.output[0]])
    return True


def _reversed_indices(start: int, end: int, step: int, length: int) -> np.ndarray:
    """Return the indices of a slice with a negative step; negative bounds count from the end."""
    first = min(start + length if start < 0 else start, length - 1)
    last = max(end + length if end < 0 else end, -1)
    return np.arange(first, last, step, dtype=np.int64)


def pad(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # x padded by zeros plus the value in the border: the builder ignores axes and gradients of the value
    x, pads, value, axes = [*node.input, "", ""][:4]
    wide = _pads_of_all_axes(op, path, x, pads, axes) if axes else pads
    if wide is None or (value not in path.reached and not axes):
        return False
    attributes = attributes_of(node)
    if value not in path.reached:
        op.node("Pad", x, wide, value, outputs=[node.output[0]], **attributes)
        return True
    dtype = op.dtype(x) or np.float32
    zero, one = (op.constant(np.array(number, dtype=dtype)) for number in (0.0, 1.0))
    around = op.Pad(op.Expand(zero, op.Shape(x)), wide, one)
    op.Add(op.Pad(x, wide), op.Mul(around, value), outputs=[node.output[0]])
    return True


def _pads_of_all_axes(op: GraphBuilder, path: GradientPath, x: str, pads: str, axes: str) -> str | None:
    """Return pads of all axes from those of given axes."""
    shape, known, chosen = op.shape(x), path.value(pads), path.value(axes)
    if shape is None or known is None or chosen is None:
        return None
    result = np.zeros((2, len(shape)), dtype=np.int64)
    result[:, np.ravel(chosen)] = known.reshape(2, -1)
    return op.constant(result.ravel())


#: Rewrites by operator.
RULES = {"Pad": pad, "Slice": backward_slice, "Split": split}
