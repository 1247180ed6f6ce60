"""Normalizations, Dropout and SoftmaxCrossEntropyLoss.

The builder requires the optional outputs that training graphs have, and omits the gradients of these outputs.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...graphs import GraphBuilder
from ...graphs.nodes import attributes_of
from .forms import reduce_axes
from .gradient_path import GradientPath

__all__ = ["RULES"]


def _mean(op: GraphBuilder, x: str, axes: list[int], **outputs: list[str]) -> str:
    return reduce_axes(op, "ReduceMean", x, axes, **outputs)


def _output(node: NodeProto, index: int) -> dict[str, list[str]]:
    """Return the name of an output of a node as a keyword argument, if it has one."""
    has_name = len(node.output) > index and node.output[index]
    return {"outputs": [node.output[index]]} if has_name else {}


def layer_normalization(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # s z + b with z = (x - mean) / sqrt(variance + epsilon), over the last axes
    x, scale = node.input[:2]
    shape, dtype = op.shape(x), op.dtype(x)
    if not shape or dtype is None:
        return False
    attributes = attributes_of(node)
    axes = list(range(attributes.get("axis", -1) % len(shape), len(shape)))
    ranks = [len(op.shape(name) or ()) for name in node.input[1:]]
    if max(ranks) > len(axes):
        return False  # onnxruntime ignores their axes and reads their elements in sequence
    epsilon = op.constant(np.array(attributes.get("epsilon", 1e-5), dtype=dtype))
    centred = op.Sub(x, _mean(op, x, axes, **_output(node, 1)))
    variance = _mean(op, op.Mul(centred, centred), axes)
    inverse = op.Reciprocal(op.Sqrt(op.Add(variance, epsilon)), **_output(node, 2))
    _scale(op, op.Mul(centred, inverse), scale, node.input[2] if len(node.input) > 2 else "", node)
    return True


def _scale(op: GraphBuilder, z: str, scale: str, shift: str, node: NodeProto) -> None:
    if shift:
        op.Add(op.Mul(z, scale), shift, outputs=[node.output[0]])
    else:
        op.Mul(z, scale, outputs=[node.output[0]])


def batch_normalization(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # s (x - m) / sqrt(v + epsilon) + b, one s, m, v and b for each channel
    attributes, shape, dtype = attributes_of(node), op.shape(node.input[0]), op.dtype(node.input[0])
    if attributes.get("training_mode", 0) or shape is None or dtype is None:
        return False
    wide = list(range(1, len(shape) - 1))
    x, scale, shift, mean, variance = (
        op.Unsqueeze(name, wide) if index and wide else name for index, name in enumerate(node.input)
    )
    epsilon = op.constant(np.array(attributes.get("epsilon", 1e-5), dtype=dtype))
    z = op.Div(op.Sub(x, mean), op.Sqrt(op.Add(variance, epsilon)))
    _scale(op, z, scale, shift, node)
    return True


def instance_normalization(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # s z + b with z = (x - mean) / sqrt(variance + epsilon), over the space of a channel
    shape, dtype = op.shape(node.input[0]), op.dtype(node.input[0])
    if shape is None or dtype is None:
        return False
    axes = list(range(2, len(shape)))
    x, scale, shift = (op.Unsqueeze(n, list(range(1, len(shape) - 1))) if i and axes else n
                       for i, n in enumerate(node.input))  # fmt: skip
    epsilon = op.constant(np.array(attributes_of(node).get("epsilon", 1e-5), dtype=dtype))
    centred = op.Sub(x, _mean(op, x, axes))
    variance = _mean(op, op.Mul(centred, centred), axes)
    _scale(op, op.Div(centred, op.Sqrt(op.Add(variance, epsilon))), scale, shift, node)
    return True


def softmax_cross_entropy(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # - log softmax(x) of the label; other readers of the log-probabilities read a LogSoftmax
    named = _output(node, 1)
    if named:
        op.LogSoftmax(node.input[0], axis=1, **named)
    outputs = [node.output[0], op.unique("logarithms")]
    op.node("SoftmaxCrossEntropyLoss", *node.input, outputs=outputs, **attributes_of(node))
    return True


def dropout(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # identity in inference mode, in which the builder also divides by 1 - ratio
    mode = node.input[2] if len(node.input) > 2 else ""
    known = path.value(mode)
    if mode and known is None:
        return False
    mask = _output(node, 1)
    if known is None or not known.any():
        op.Identity(node.input[0], outputs=[node.output[0]])
        if mask:
            op.Expand(np.array(True), op.Shape(node.input[0]), **mask)
        return True
    if mask:
        return False
    op.node("Dropout", *node.input, outputs=[node.output[0], op.unique("mask")], **attributes_of(node))
    return True


#: Rewrites by operator.
RULES = {
    "BatchNormalization": batch_normalization,
    "Dropout": dropout,
    "InstanceNormalization": instance_normalization,
    "LayerNormalization": layer_normalization,
    "SoftmaxCrossEntropyLoss": softmax_cross_entropy,
}
