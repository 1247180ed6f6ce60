"""Convolutions and pooling.

The kernels of AveragePoolGrad and MaxPoolGrad read the sizes declared in the graph, not those of the
tensors, and bodies of loops declare none. That of ConvGrad divides by the number of samples.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...graphs import GraphBuilder
from ...graphs.nodes import attributes_of
from .forms import reduce_axes
from .gradient_path import GradientPath

__all__ = ["LAST_RULES", "RULES"]


def average_pool(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # a kernel of equal weights for each channel, divided by the number of elements in the window
    x, attributes = node.input[0], attributes_of(node)
    shape, dtype = op.shape(x), op.dtype(x)
    with_pads = attributes.pop("count_include_pad", 0)
    rounded = attributes.pop("ceil_mode", 0) or attributes.get("auto_pad", b"NOTSET") not in (
        b"NOTSET",
        b"VALID",
    )
    if shape is None or dtype is None or rounded or not isinstance(shape[1], int):
        return False
    size = attributes["kernel_shape"]
    attributes["group"] = shape[1]
    inside = not with_pads and any(attributes.get("pads", ()))
    weight = 1.0 if inside else 1.0 / np.prod(size)
    kernel = op.constant(np.full((shape[1], 1, *size), weight, dtype=dtype))
    if not inside:
        op.node("Conv", x, kernel, outputs=[node.output[0]], **attributes)
        return True
    ones = op.Expand(op.constant(np.array(1.0, dtype=dtype)), op.Shape(x))
    counts = op.node("Conv", ones, kernel, **attributes)
    op.Div(op.node("Conv", x, kernel, **attributes), counts, outputs=[node.output[0]])
    return True


def max_pool(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # the elements at the indices of the largest ones, which refer to the flattened tensor
    x, attributes = node.input[0], attributes_of(node)
    if len(node.output) > 1 and node.output[1]:
        op.node("MaxPool", x, outputs=[op.unique("largest"), node.output[1]], **attributes)
    attributes.pop("storage_order", None)
    indices = op.node("MaxPool", x, n_outputs=2, **attributes)[1]
    op.Gather(op.Reshape(x, [-1]), indices, axis=0, outputs=[node.output[0]])
    return True


def global_average_pool(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # the mean over all axes but the first two
    shape = op.shape(node.input[0])
    if shape is None:
        return False
    reduce_axes(op, "ReduceMean", node.input[0], list(range(2, len(shape))), outputs=[node.output[0]])
    return True


def convolution(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # with an additional sample of zeros, so that the batch is not empty
    shape = op.shape(node.input[0])
    if shape is None or (isinstance(shape[0], int) and shape[0] > 0):
        return False
    more = [0] * len(shape) + [1] + [0] * (len(shape) - 1)
    padded = op.node("Conv", op.Pad(node.input[0], more), *node.input[1:], **attributes_of(node))
    op.Slice(padded, [0], [-1], [0], outputs=[node.output[0]])
    return True


#: Rewrites by operator.
RULES = {"AveragePool": average_pool, "GlobalAveragePool": global_average_pool, "MaxPool": max_pool}
#: Rewrites applied after them.
LAST_RULES = {"Conv": convolution}
