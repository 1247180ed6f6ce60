"""Gradients of elementary functions."""

from __future__ import annotations

import math

import numpy as np

from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("functions")


@RULES.rule("Sin")
def sin(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = sin(x), dx = cos(x) dy; onnxruntime has no float64 kernel of Cos
    x = node.I(0)
    is_double = op.dtype(x) == np.float64
    return op.Mul(grad, op.Sin(op.Add(x, math.pi / 2)) if is_double else op.Cos(x))


@RULES.rule("Cos")
def cos(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = cos(x), dx = -sin(x) dy
    return op.Neg(op.Mul(grad, op.Sin(node.I(0))))


@RULES.rule("Tan")
def tan(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = tan(x), dx = (1 + y^2) dy
    return op.Mul(grad, op.Add(op.square(node.O(0)), 1.0))


@RULES.rule("Asin")
def asin(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = asin(x), dx = dy / sqrt(1 - x^2)
    return op.Div(grad, op.Sqrt(op.Sub(1.0, op.square(node.I(0)))))


@RULES.rule("Acos")
def acos(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = acos(x), dx = -dy / sqrt(1 - x^2)
    return op.Neg(asin(op, node, grad))


@RULES.rule("Atan")
def atan(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = atan(x), dx = dy / (1 + x^2)
    return op.Div(grad, op.Add(op.square(node.I(0)), 1.0))


@RULES.rule("Sinh")
def sinh(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = sinh(x), dx = cosh(x) dy
    return op.Mul(grad, op.Cosh(node.I(0)))


@RULES.rule("Cosh")
def cosh(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = cosh(x), dx = sinh(x) dy
    return op.Mul(grad, op.Sinh(node.I(0)))


@RULES.rule("Asinh")
def asinh(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = asinh(x), dx = dy / sqrt(x^2 + 1)
    return op.Div(grad, op.Sqrt(op.Add(op.square(node.I(0)), 1.0)))


@RULES.rule("Acosh")
def acosh(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = acosh(x), dx = dy / sqrt(x^2 - 1)
    return op.Div(grad, op.Sqrt(op.Sub(op.square(node.I(0)), 1.0)))


@RULES.rule("Atanh")
def atanh(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = atanh(x), dx = dy / (1 - x^2)
    return op.Div(grad, op.Sub(1.0, op.square(node.I(0))))


@RULES.rule("Erf")
def erf(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = erf(x), dx = 2 / sqrt(pi) exp(-x^2) dy
    bell = op.Exp(op.Neg(op.square(node.I(0))))
    return op.Mul(grad, op.Mul(bell, 2 / math.sqrt(math.pi)))


@RULES.rule("Tanh")
def tanh(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = tanh(x), dx = (1 - y^2) dy
    return op.Mul(grad, op.Sub(1.0, op.square(node.O(0))))


@RULES.rule("Sigmoid")
def sigmoid(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = 1 / (1 + exp(-x)), dx = y (1 - y) dy
    y = node.O(0)
    return op.Mul(grad, op.Mul(y, op.Sub(1.0, y)))


@RULES.rule("Softplus")
def softplus(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = log(1 + exp(x)), dx = sigmoid(x) dy
    return op.Mul(grad, op.Sigmoid(node.I(0)))


@RULES.rule("Softsign")
def softsign(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x / (1 + |x|), dx = dy / (1 + |x|)^2
    return op.Div(grad, op.square(op.Add(op.Abs(node.I(0)), 1.0)))
