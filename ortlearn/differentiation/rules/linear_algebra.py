"""Gradients of matrix products."""

from __future__ import annotations

from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet
from ..types.dimensions import broadcast_shapes

__all__ = ["RULES", "matmul_gradients"]

RULES = RuleSet("linear_algebra")


@RULES.rule("MatMul")
def matmul(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = a @ b, da = dy @ b', db = a' @ dy
    return matmul_gradients(op, node, node.I(0), node.I(1), grad)


def matmul_gradients(
    op: GradientBuilder, node: RuleNode, a: str, b: str, grad: str
) -> tuple[str | None, str | None] | None:
    """Return the gradients of the operands of a product, or None if not required."""
    ranks = node.rank(a), node.rank(b)
    if ranks == (2, 2):
        return (
            op.Gemm(grad, b, transB=1) if node.needs(0) else None,
            op.Gemm(a, grad, transA=1) if node.needs(1) else None,
        )
    if ranks == (1, 1):
        return op.Mul(grad, b), op.Mul(grad, a)
    if 1 in ranks:
        return _with_vector(op, node, a, b, grad)
    return (
        _left(op, a, b, grad) if node.needs(0) else None,
        _right(op, a, b, grad) if node.needs(1) else None,
    )


def _left(op: GradientBuilder, a: str, b: str, grad: str) -> str:
    result = op.product(grad, op.swap_last(b))
    return op.unbroadcast(_product_type(op, result, a, b, a), a)


def _right(op: GradientBuilder, a: str, b: str, grad: str) -> str:
    shape = op.shape(a)
    if op.rank(b) == 2 and shape is not None:
        rows, columns = op.shape(b)
        if isinstance(rows, int) and isinstance(columns, int):
            # One product over all rows of the batch instead of a batch of products, summed.
            flat, flat_grad = op.reshape(a, [-1, rows]), op.reshape(grad, [-1, columns])
            return op.Gemm(flat, flat_grad, transA=1)
    result = op.product(op.swap_last(a), grad)
    return op.unbroadcast(_product_type(op, result, a, b, b), b)


def _product_type(op: GradientBuilder, result: str, a: str, b: str, like: str) -> str:
    """Set the shape of a gradient before the sum over the batch."""
    left, right, own = op.shape(a), op.shape(b), op.shape(like)
    if left is None or right is None:
        return result
    batch = broadcast_shapes([left[:-2], right[:-2]]) or ()
    return op.with_type(result, like, [*batch, *own[-2:]])


def _with_vector(
    op: GradientBuilder, node: RuleNode, a: str, b: str, grad: str
) -> tuple[str | None, str | None]:
    """Differentiate a product with one vector as a product with a matrix of one row or column."""
    if op.rank(a) == 1:
        row, wide = op.unsqueeze(a, [0]), op.unsqueeze(grad, [-2])
        da = op.reshape_like(_left(op, row, b, wide), a) if node.needs(0) else None
        return da, _right(op, row, b, wide) if node.needs(1) else None
    column, tall = op.unsqueeze(b, [1]), op.unsqueeze(grad, [-1])
    db = op.reshape_like(_right(op, a, column, tall), b) if node.needs(1) else None
    return _left(op, a, column, tall) if node.needs(0) else None, db


@RULES.rule("Gemm")
def gemm(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = alpha A @ B + beta c with A = a or a', da = alpha dy @ B' (or its transpose), dc = beta dy
    a, b = node.I(0), node.I(1)
    trans_a, trans_b = node.attribute("transA", 0), node.attribute("transB", 0)
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    da = db = dc = None
    if node.needs(0):
        left, right = (b, grad) if trans_a else (grad, b)
        flags = {"transA": trans_b, "transB": 1} if trans_a else {"transB": 1 - trans_b}
        da = _scaled_gemm(op, left, right, alpha, flags)
    if node.needs(1):
        left, right = (grad, a) if trans_b else (a, grad)
        flags = {"transA": 1, "transB": trans_a} if trans_b else {"transA": 1 - trans_a}
        db = _scaled_gemm(op, left, right, alpha, flags)
    if node.needs(2):
        dc = op.unbroadcast(grad if beta == 1 else op.Mul(grad, beta), node.I(2))
    return [da, db, dc][: node.n_inputs]


def _scaled_gemm(op: GradientBuilder, left: str, right: str, alpha: float, flags: dict[str, int]) -> str:
    flags = {name: value for name, value in flags.items() if value}
    return op.Gemm(left, right, alpha=None if alpha == 1 else alpha, **flags)


@RULES.rule("MatMulInteger")
def matmul_integer(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = (a - p) @ (b - q) of integers, da = dy (b - q)', db = (a - p)' dy, dp = -da, dq = -db
    a, b, p, q = (op.cast_like(node.I(i), grad) if node.I(i) else "" for i in range(4))
    if p and op.rank(p) == 1:
        p = op.unsqueeze(p, [1])
    left, right = (
        op.with_type(op.Sub(name, zero), name) if zero else name for name, zero in ((a, p), (b, q))
    )
    grads = matmul_gradients(op, node, left, right, grad)
    zeros = [
        op.reshape_like(op.unbroadcast(op.Neg(one), zero), node.I(i)) if node.needs(i) and one else None
        for i, one, zero in ((2, grads[0], p), (3, grads[1], q))
    ]
    return [*grads, *zeros][: node.n_inputs]
