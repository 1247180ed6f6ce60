"""Activations written with Exp and Where.

Where computes both branches: arguments are bounded first, so that the unused branch does not overflow.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...graphs import GraphBuilder
from ...graphs.nodes import attributes_of
from .forms import reduce_axes
from .gradient_path import GradientPath

__all__ = ["LAST_RULES", "RULES"]

#: Constants of Selu by default (Klambauer et al., 2017).
SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def _number(op: GraphBuilder, name: str, value: float) -> str:
    return op.constant(np.array(value, dtype=op.dtype(name) or np.float32))


def _exponential(op: GraphBuilder, x: str, alpha: float, scale: float = 1.0) -> tuple[str, str]:
    """Return whether x is positive, and alpha (exp(x / scale) - 1), bounded for positive x."""
    zero = _number(op, x, 0.0)
    positive = op.Greater(x, zero)
    negative = op.Where(positive, zero, x)
    if scale != 1.0:
        negative = op.Div(negative, _number(op, x, scale))
    falling = op.Sub(op.Exp(negative), _number(op, x, 1.0))
    return positive, op.Mul(falling, _number(op, x, alpha))


def elu(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # x where x > 0, alpha (exp(x) - 1) elsewhere
    x, alpha = node.input[0], attributes_of(node).get("alpha", 1.0)
    positive, falling = _exponential(op, x, alpha)
    op.Where(positive, x, falling, outputs=[node.output[0]])
    return True


def celu(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # x where x > 0, alpha (exp(x / alpha) - 1) elsewhere
    x, alpha = node.input[0], attributes_of(node).get("alpha", 1.0)
    positive, falling = _exponential(op, x, alpha, alpha)
    op.Where(positive, x, falling, outputs=[node.output[0]])
    return True


def selu(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # gamma elu(x)
    x, attributes = node.input[0], attributes_of(node)
    positive, falling = _exponential(op, x, attributes.get("alpha", SELU_ALPHA))
    value = op.Where(positive, x, falling)
    op.Mul(value, _number(op, x, attributes.get("gamma", SELU_GAMMA)), outputs=[node.output[0]])
    return True


def gelu(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: the builder only has the exact form
    if attributes_of(node).get("approximate", b"none") != b"tanh":
        return False
    x = node.input[0]
    cube = op.Mul(op.Mul(op.Mul(x, x), x), _number(op, x, 0.044715))
    bent = op.Tanh(op.Mul(op.Add(x, cube), _number(op, x, np.sqrt(2 / np.pi))))
    half = op.Mul(x, _number(op, x, 0.5))
    op.Mul(half, op.Add(bent, _number(op, x, 1.0)), outputs=[node.output[0]])
    return True


def hard_sigmoid(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # alpha x + beta, clipped to [0, 1]
    x, attributes = node.input[0], attributes_of(node)
    scaled = op.Mul(x, _number(op, x, attributes.get("alpha", 0.2)))
    shifted = op.Add(scaled, _number(op, x, attributes.get("beta", 0.5)))
    op.Clip(shifted, _number(op, x, 0.0), _number(op, x, 1.0), outputs=[node.output[0]])
    return True


def thresholded_relu(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # x where x > alpha, 0 elsewhere
    x = node.input[0]
    passed = op.Greater(x, _number(op, x, attributes_of(node).get("alpha", 1.0)))
    op.Where(passed, x, _number(op, x, 0.0), outputs=[node.output[0]])
    return True


def softmax(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # exp(x - log(sum(exp(x)))), or its logarithm: the builder's kernels are float32 only, and
    # terminate the process for empty inputs
    x, axis = node.input[0], attributes_of(node).get("axis", -1)
    shape = op.shape(x)
    whole = shape is not None and all(isinstance(dim, int) and dim > 0 for dim in shape)
    if op.opset < 13 or (whole and op.dtype(x) == np.float32):
        return False
    total = reduce_axes(op, "ReduceLogSumExp", x, [axis])
    if node.op_type == "Softmax":
        op.Exp(op.Sub(x, total), outputs=[node.output[0]])
    else:
        op.Sub(x, total, outputs=[node.output[0]])
    return True


#: Rewrites by operator.
RULES = {
    "Celu": celu,
    "Elu": elu,
    "Gelu": gelu,
    "HardSigmoid": hard_sigmoid,
    "Selu": selu,
    "ThresholdedRelu": thresholded_relu,
}
#: Rewrites applied after them.
LAST_RULES = {"LogSoftmax": softmax, "Softmax": softmax}
