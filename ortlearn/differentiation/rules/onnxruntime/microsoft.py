"""Gradients of operators of onnxruntime's own domain; the gradients use standard operators."""

from __future__ import annotations

from ...gradient_builder import GradientBuilder
from ...rule_context import Gradients, RuleNode
from ...rule_set import RuleSet
from ..activations import gelu_slope
from ..linear_algebra import matmul_gradients

__all__ = ["RULES"]

RULES = RuleSet("microsoft")


@RULES.rule("Gelu", domain="com.microsoft")
def gelu(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x P(x) with P the normal distribution function, dx = (P(x) + x P'(x)) dy
    return op.Mul(grad, gelu_slope(op, node.I(0), False))


@RULES.rule("CDist", domain="com.microsoft")
def cdist(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y_ij = |a_i - b_j|^2, da_i = 2 sum_j dy_ij (a_i - b_j), db_j = 2 sum_i dy_ij (b_j - a_i);
    # for y_ij = |a_i - b_j|, dy / (2 y) stands for dy
    a, b = node.I(0), node.I(1)
    if node.attribute("metric", "sqeuclidean") == "sqeuclidean":
        scaled = op.Add(grad, grad)
    else:
        # The derivative at equal points is set to zero, exactly, because sums follow.
        equal = op.Equal(node.O(0), 0.0)
        scaled = op.Where(equal, 0.0, op.Div(grad, op.Where(equal, 1.0, node.O(0))))
    da = db = None
    if node.needs(0):
        da = op.Sub(op.Mul(a, op.reduce("ReduceSum", scaled, [1])), op.Gemm(scaled, b))
    if node.needs(1):
        column = op.reduce("ReduceSum", op.transpose(scaled, [1, 0]), [1])
        db = op.Sub(op.Mul(b, column), op.Gemm(scaled, a, transA=1))
    return da, db


@RULES.rule("FusedMatMul", "TransposeMatMul", domain="com.microsoft")
def fused_matmul(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = alpha A @ B with A = a or a', da = alpha dy @ B' (or its transpose)
    if node.attribute("transBatchA", 0) or node.attribute("transBatchB", 0):
        raise node.error("transBatchA and transBatchB have no gradient rule")
    flags = [bool(node.attribute(name, 0)) for name in ("transA", "transB")]
    ranks = [node.rank(node.I(index)) for index in (0, 1)]
    # A vector has nothing to transpose.
    flags = [flag and rank > 1 for flag, rank in zip(flags, ranks, strict=True)]
    a, b = [op.swap_last(node.I(i)) if flag else node.I(i) for i, flag in enumerate(flags)]
    alpha = node.attribute("alpha", 1.0)
    scaled = grad if alpha == 1 else op.with_type(op.Mul(grad, alpha), grad)
    grads = matmul_gradients(op, node, a, b, scaled)
    return [
        op.swap_last(op.with_type(name, operand)) if flag and name else name
        for name, operand, flag in zip(grads, (a, b), flags, strict=True)
    ]


@RULES.rule("Inverse", domain="com.microsoft")
def inverse(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = inverse of x, dx = -y' @ dy @ y'
    transposed = op.swap_last(op.with_type(node.O(0), node.I(0)))
    return op.Neg(op.MatMul(op.MatMul(transposed, grad), transposed))
