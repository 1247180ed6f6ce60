"""Gradients of activation functions."""

from __future__ import annotations

import math

from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet

__all__ = ["RULES", "gelu_slope"]

RULES = RuleSet("activations")


@RULES.rule("Relu")
def relu(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = max(x, 0), dx = sign(y) dy
    y = node.O(0)
    same_type = op.elem_type(y) is not None and op.elem_type(y) == op.elem_type(grad)
    return op.Mul(grad, op.Sign(y) if same_type else op.mask(op.Greater(y, 0.0), grad))


@RULES.rule("LeakyRelu")
def leaky_relu(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x > 0 ? x : alpha x, dx = x > 0 ? dy : alpha dy
    return op.Mul(grad, op.Where(op.Greater(node.I(0), 0.0), 1.0, node.attribute("alpha", 0.01)))


@RULES.rule("PRelu", broadcast=True)
def prelu(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x < 0 ? s x : x, dx = x < 0 ? s dy : dy, ds = x < 0 ? x dy : 0
    x, slope = node.I(0), node.I(1)
    negative = op.Less(x, 0.0)
    return (
        op.Mul(grad, op.Where(negative, slope, 1.0)) if node.needs(0) else None,
        op.Mul(grad, op.Where(negative, x, 0.0)) if node.needs(1) else None,
    )


@RULES.rule("Elu")
def elu(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x > 0 ? x : alpha (exp(x) - 1), dx = x > 0 ? dy : (y + alpha) dy
    slope = op.Add(node.O(0), node.attribute("alpha", 1.0))
    return op.Mul(grad, op.Where(op.Greater(node.I(0), 0.0), 1.0, slope))


@RULES.rule("Selu")
def selu(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = gamma (x > 0 ? x : alpha (exp(x) - 1)), dx = x > 0 ? gamma dy : (y + gamma alpha) dy
    alpha = node.attribute("alpha", 1.67326319217681884765625)
    gamma = node.attribute("gamma", 1.05070102214813232421875)
    slope = op.Add(node.O(0), alpha * gamma)
    return op.Mul(grad, op.Where(op.Greater(node.I(0), 0.0), gamma, slope))


@RULES.rule("Celu")
def celu(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x > 0 ? x : alpha (exp(x / alpha) - 1), dx = x > 0 ? dy : (y / alpha + 1) dy
    slope = op.Add(op.Div(node.O(0), node.attribute("alpha", 1.0)), 1.0)
    return op.Mul(grad, op.Where(op.Greater(node.I(0), 0.0), 1.0, slope))


@RULES.rule("ThresholdedRelu")
def thresholded_relu(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x > alpha ? x : 0, dx = x > alpha ? dy : 0
    return op.Mul(grad, op.mask(op.Greater(node.I(0), node.attribute("alpha", 1.0)), grad))


@RULES.rule("Shrink")
def shrink(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x < -l ? x + b : x > l ? x - b : 0, dx = |x| > l ? dy : 0
    return op.Mul(grad, op.mask(op.Greater(op.Abs(node.I(0)), node.attribute("lambd", 0.5)), grad))


@RULES.rule("HardSigmoid")
def hard_sigmoid(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = max(0, min(1, alpha x + beta)), dx = 0 < y < 1 ? alpha dy : 0
    y = node.O(0)
    inside = op.And(op.Greater(y, 0.0), op.Less(y, 1.0))
    return op.Mul(grad, op.Where(inside, node.attribute("alpha", 0.2), 0.0))


@RULES.rule("HardSwish")
def hard_swish(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x max(0, min(1, x / 6 + 1/2)), dx = dy times 0 below -3, x / 3 + 1/2, 1 above 3
    x = node.I(0)
    slope = op.Add(op.Div(x, 3.0), 0.5)
    slope = op.Where(op.Greater(x, -3.0), slope, 0.0)
    return op.Mul(grad, op.Where(op.Less(x, 3.0), slope, 1.0))


@RULES.rule("Mish")
def mish(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x t with t = tanh(log(1 + exp(x))), dx = (t + x (1 - t^2) sigmoid(x)) dy
    x = node.I(0)
    t = op.Tanh(op.Softplus(x))
    steep = op.Mul(op.Sub(1.0, op.square(t)), op.Sigmoid(x))
    return op.Mul(grad, op.Add(t, op.Mul(x, steep)))


@RULES.rule("Gelu")
def gelu(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x P(x) with P the normal distribution function, dx = (P(x) + x P'(x)) dy
    return op.Mul(grad, gelu_slope(op, node.I(0), node.attribute("approximate", "none") == "tanh"))


def gelu_slope(op: GradientBuilder, x: str, approximate: bool) -> str:
    """Write the derivative of Gelu, or of its approximation by tanh."""
    if approximate:
        # P(x) = (1 + t) / 2 with t = tanh(u), u = c (x + a x^3), u' = c (1 + 3 a x^2)
        c, a = math.sqrt(2 / math.pi), 0.044715
        squared = op.square(x)
        t = op.Tanh(op.Mul(op.Mul(x, op.Add(op.Mul(squared, a), 1.0)), c))
        inner = op.Mul(op.Add(op.Mul(squared, 3 * a), 1.0), 0.5 * c)
        density = op.Mul(op.Sub(1.0, op.square(t)), inner)
    else:
        t = op.Erf(op.Mul(x, math.sqrt(0.5)))
        density = op.Mul(op.Exp(op.Mul(op.square(x), -0.5)), 1 / math.sqrt(2 * math.pi))
    return op.Add(op.Add(op.Mul(t, 0.5), 0.5), op.Mul(x, density))


@RULES.rule("Softmax")
def softmax(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = exp(x) / sum(exp(x)), dx = y (dy - sum(y dy))
    axis, y = node.attribute("axis", -1), node.O(0)
    weighted = op.reduce("ReduceSum", op.Mul(grad, y), [axis])
    return op.Mul(y, op.Sub(grad, weighted))


@RULES.rule("LogSoftmax")
def log_softmax(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x - log(sum(exp(x))), dx = dy - exp(y) sum(dy)
    total = op.reduce("ReduceSum", grad, [node.attribute("axis", -1)])
    return op.Sub(grad, op.Mul(op.Exp(node.O(0)), total))
