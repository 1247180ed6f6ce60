"""Gradients of quantised operators, decomposed into DequantizeLinear, float operators and QuantizeLinear."""

from __future__ import annotations

import numpy as np

from ...decomposition import by_decomposition
from ...gradient_builder import GradientBuilder
from ...rule_context import Gradients, RuleNode
from ...rule_set import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("quantized")

_MS = "com.microsoft"
_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def _floats(op: GradientBuilder, node: RuleNode, first: int, axis: int | None = None) -> str:
    """Write the dequantised values of three inputs: a tensor, its scale and its zero point."""
    names = [node.input_name(first + i) for i in range(3)]
    return op.DequantizeLinear(*names, axis=axis if node.rank(names[1]) else None)


@RULES.rule("QLinearMatMul")
@by_decomposition
def q_linear_mat_mul(op: GradientBuilder, node: RuleNode) -> str:
    # y = quantised a @ b
    product = op.MatMul(_floats(op, node, 0), _floats(op, node, 3, axis=node.rank(node.input_name(3)) - 1))
    return op.QuantizeLinear(product, node.input_name(6), node.input_name(7))


@RULES.rule("QLinearConv")
@by_decomposition
def q_linear_conv(op: GradientBuilder, node: RuleNode) -> str:
    # y = quantised x * w + b, the bias in steps of both scales
    bias = ""
    if node.input_name(8):
        steps = op.Mul(node.input_name(1), node.input_name(4))
        bias = op.Mul(op.cast(node.input_name(8), np.float32), steps)
    options = {name: node.attribute(name) for name in _CONV}
    y = op.Conv(_floats(op, node, 0), _floats(op, node, 3, axis=0), bias, **options)
    return op.QuantizeLinear(y, node.input_name(6), node.input_name(7))


@RULES.rule("ConvInteger")
@by_decomposition
def conv_integer(op: GradientBuilder, node: RuleNode) -> str:
    # y = (x - p) * (w - q), of integers
    x, weight, p, q = (
        op.cast(node.input_name(i), np.float32) if node.input_name(i) else "" for i in range(4)
    )
    if q and node.rank(node.input_name(3)):
        q = op.Unsqueeze(q, list(range(1, node.rank(node.input_name(1)))))
    options = {name: node.attribute(name) for name in _CONV}
    y = op.Conv(op.Sub(x, p) if p else x, op.Sub(weight, q) if q else weight, **options)
    return op.cast(y, np.int32)


@RULES.rule("MatMulIntegerToFloat", domain=_MS)
@by_decomposition
def mat_mul_integer_to_float(op: GradientBuilder, node: RuleNode) -> str:
    # y = (a - p) @ (b - q) s t + bias
    a, b, s, t, p, q, bias = (node.input_name(i) for i in range(7))
    left = op.DequantizeLinear(a, s, p)
    right = op.DequantizeLinear(b, t, q, axis=node.rank(b) - 1 if node.rank(t) else None)
    y = op.MatMul(left, right)
    return op.Add(y, bias) if bias else y


@RULES.rule("QuantizeLinear", domain=_MS)
@by_decomposition
def quantize_linear(op: GradientBuilder, node: RuleNode) -> str:
    # y = x / s + z, rounded
    return op.QuantizeLinear(*_three(node), axis=node.attribute("axis"))


@RULES.rule("DequantizeLinear", domain=_MS)
@by_decomposition
def dequantize_linear(op: GradientBuilder, node: RuleNode) -> str:
    # y = (x - z) s
    return op.DequantizeLinear(*_three(node), axis=node.attribute("axis"))


def _three(node: RuleNode) -> list[str]:
    return [node.input_name(i) for i in range(3)]


@RULES.rule("QLinearAdd", "QLinearMul", domain=_MS)
@by_decomposition
def q_linear_binary(op: GradientBuilder, node: RuleNode) -> str:
    # y = quantised a + b, or a b
    y = op.node(node.op_type.removeprefix("QLinear"), _floats(op, node, 0), _floats(op, node, 3))
    return op.QuantizeLinear(y, node.input_name(6), node.input_name(7))


@RULES.rule("QLinearSigmoid", "QLinearLeakyRelu", domain=_MS)
@by_decomposition
def q_linear_unary(op: GradientBuilder, node: RuleNode) -> str:
    # y = quantised f(x)
    options = {"alpha": node.attribute("alpha")}
    y = op.node(node.op_type.removeprefix("QLinear"), _floats(op, node, 0), **options)
    return op.QuantizeLinear(y, node.input_name(3), node.input_name(4))


@RULES.rule("MatMulNBits", domain=_MS)
def mat_mul_n_bits(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x @ w' + b with w packed: dx = dy @ w, where w' is the operator applied to the identity
    if any(node.needs(i) for i in (2, 3)):
        raise node.error("scales and zero points have no gradient rule")
    rows = op.constant([node.attribute("K")] * 2)
    names = ("K", "N", "accuracy_level", "bits", "block_size")
    options = {name: node.attribute(name) for name in names}
    inner = [node.I(i) if i < 5 else "" for i in range(1, node.n_inputs)]
    weights = op.node("MatMulNBits", op.EyeLike(op.fill(rows)), *inner, domain=_MS, **options)
    op.set_type(weights, op.elem_type(grad) or 1, (node.attribute("K"), node.attribute("N")))
    dx = op.MatMul(grad, op.swap_last(weights)) if node.needs(0) else None
    db = op.unbroadcast(grad, node.I(5)) if node.needs(5) else None
    return [dx, *[None] * 4, db][: node.n_inputs]
