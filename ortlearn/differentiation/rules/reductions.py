"""Gradients of reductions."""

from __future__ import annotations

import numpy as np

from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("reductions")


def _axes(node: RuleNode) -> list[int] | str | None:
    """Return the reduced axes: a list, None for all, or the name of a tensor if they are not constant."""
    axes = node.attribute("axes")
    if axes is None and node.I(1):
        known = node.constant(node.I(1))
        if known is None:
            return node.I(1)
        axes = [int(axis) for axis in known]
    if not axes:
        return [] if node.attribute("noop_with_empty_axes", 0) else None
    return axes


def _kept(op: GradientBuilder, node: RuleNode, name: str) -> str:
    """Return a tensor of the output's shape with the reduced axes inserted, of length one."""
    axes = _axes(node)
    if node.attribute("keepdims", 1) or not axes:  # without axes the output is x or a scalar
        return name
    if isinstance(axes, str):
        return op.Unsqueeze(name, axes)
    shape = node.shape(node.I(0))
    if shape is not None:
        axes = sorted(axis % len(shape) for axis in axes)
    return op.unsqueeze(name, axes)


def _gradients(node: RuleNode, grad: str) -> list[str | None]:
    return [grad, None][: node.n_inputs]


@RULES.rule("ReduceSum")
def reduce_sum(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = sum(x), dx = dy
    return _gradients(node, op.expand_like(_kept(op, node, grad), node.I(0)))


@RULES.rule("ReduceMean")
def reduce_mean(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = sum(x) / n, dx = dy / n
    x, axes = node.I(0), _axes(node)
    if axes == []:
        return _gradients(node, grad)
    if isinstance(axes, str):
        # Sizes of the tensors, because empty axes mean all axes, or none.
        count = op.Div(*(op.cast(op.Size(name), op.float_dtype) for name in (x, grad)))
    else:
        count = op.size_along(x, axes, op.float_dtype)
    return _gradients(node, op.expand_like(_kept(op, node, op.Div(grad, count)), x))


@RULES.rule("ReduceSumSquare")
def reduce_sum_square(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = sum(x^2), dx = 2 x dy
    kept = _kept(op, node, grad)
    return _gradients(node, op.Mul(node.I(0), op.Add(kept, kept)))


@RULES.rule("ReduceL1")
def reduce_l1(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = sum(|x|), dx = sign(x) dy
    return _gradients(node, op.Mul(op.Sign(node.I(0)), _kept(op, node, grad)))


@RULES.rule("ReduceL2")
def reduce_l2(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = sqrt(sum(x^2)), dx = x dy / y, zero if y = 0
    y = op.Max(node.O(0), float(np.finfo(op.float_dtype).tiny))
    return _gradients(node, op.Mul(node.I(0), _kept(op, node, op.Div(grad, y))))


@RULES.rule("ReduceLogSum")
def reduce_log_sum(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = log(sum(x)), dx = exp(-y) dy
    scaled = op.Div(grad, op.Exp(node.O(0)))
    return _gradients(node, op.expand_like(_kept(op, node, scaled), node.I(0)))


@RULES.rule("ReduceLogSumExp")
def reduce_log_sum_exp(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = log(sum(exp(x))), dx = exp(x - y) dy
    share = op.Exp(op.Sub(node.I(0), _kept(op, node, node.O(0))))
    return _gradients(node, op.Mul(share, _kept(op, node, grad)))


@RULES.rule("ReduceMax", "ReduceMin")
def reduce_extremum(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = max(x), dx = dy shared among the elements equal to y
    chosen = op.mask(op.Equal(node.I(0), _kept(op, node, node.O(0))), grad)
    axes = _axes(node)
    ties = op.reduce("ReduceSum", chosen, axes, keepdims=1) if axes != [] else 1.0
    return _gradients(node, op.Mul(chosen, op.Div(_kept(op, node, grad), ties)))


@RULES.rule("ReduceProd")
def reduce_prod(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = prod(x), dx_i = dy prod(x_j, j other than i); zeros are counted separately
    x, axes = node.I(0), _axes(node)
    if axes == []:
        return _gradients(node, grad)
    zero = op.Equal(x, 0.0)
    others = op.Where(zero, 1.0, x)
    zeros = op.mask(zero, x)
    product = op.reduce("ReduceProd", others, axes)
    # Another factor is zero if there are more zeros than the element itself.
    alone = op.mask(op.Equal(op.reduce("ReduceSum", zeros, axes), zeros), grad)
    slope = op.Mul(op.Div(product, others), alone)
    return _gradients(node, op.Mul(slope, _kept(op, node, grad)))


@RULES.rule("CumSum")
def cum_sum(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y_i = sum of x_j up to i, dx_j = sum of dy_i from j
    exclusive, reverse = node.attribute("exclusive", 0), node.attribute("reverse", 0)
    return op.CumSum(grad, node.I(1), exclusive=exclusive, reverse=1 - reverse), None


@RULES.rule("CumProd")
def cum_prod(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y_i = product of x_j up to i, dx_j = sum of dy_i y_i from j, over x_j. At the first zero, it is that sum
    # with y_i of the other factors; behind it, dx is zero.
    x, axis, exclusive = node.I(0), node.I(1), node.attribute("exclusive", 0)
    reverse = node.attribute("reverse", 0)

    def summed(name: str) -> str:
        return op.CumSum(op.Mul(grad, name), axis, exclusive=exclusive, reverse=1 - reverse)

    zeros = op.CumSum(op.mask(op.Equal(x, 0.0), x), axis, reverse=reverse)
    factors = op.Where(op.Equal(x, 0.0), 1.0, x)
    others = op.Where(op.Equal(zeros, 1.0), factors, x)
    products = op.CumProd(others, axis, exclusive=exclusive, reverse=reverse)
    before = op.mask(op.Equal(zeros, 0.0), x)
    first = op.mask(op.And(op.Equal(x, 0.0), op.Equal(zeros, 1.0)), x)
    alone = op.Mul(summed(products), first)
    return op.Add(op.Mul(op.Div(summed(node.O(0)), factors), before), alone), None


@RULES.rule("TopK")
def top_k(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x[i], dx[i] = dy
    if grad is None:
        return None, None
    zeros = op.fill_like(node.I(0))
    return op.ScatterElements(zeros, node.require_output(1), grad, axis=node.attribute("axis", -1)), None
