"""Matrix products."""

from __future__ import annotations

from typing import Any

from onnx import NodeProto

from ...graphs import GraphBuilder
from ...graphs.nodes import attribute
from .scope import BatchScope, NotBatchable

__all__ = ["RULES"]


def matmul(scope: BatchScope, node: NodeProto) -> None:
    """Write MatMul of matrices, or of stacks of them."""
    left, right = node.input
    ranks = scope.rank(left), scope.rank(right)
    if min(ranks) < 2:
        raise NotBatchable("MatMul with a vector.")
    if max(ranks) == 2:
        _product(scope, left, right, False, False, outputs=node.output)
        return
    parts = [scope.aligned(name, max(ranks)) for name in node.input]
    scope.op.MatMul(*parts, outputs=node.output)


def gemm(scope: BatchScope, node: NodeProto) -> None:
    """Write Gemm as a product, scaling and an addition."""
    left, right, *rest = node.input
    trans = bool(attribute(node, "transA", 0)), bool(attribute(node, "transB", 0))
    alpha, beta = attribute(node, "alpha", 1.0), attribute(node, "beta", 1.0)
    added = rest[0] if rest and rest[0] else None
    if added is not None and beta == 1.0 and _is_column(scope, left, right, trans[1]):
        _product_with_column(scope, left, right, *trans, alpha, added, outputs=node.output)
        return
    if scope.is_batched(left) or scope.is_batched(right):
        value = _product(scope, left, right, *trans, alpha, outputs=None if added else node.output)
    else:
        value = scope.op.Gemm(left, right, transA=int(trans[0]), transB=int(trans[1]), alpha=float(alpha))
    if added is not None:
        term = scope.aligned(added, 2)
        if beta != 1.0:
            term = scope.op.Mul(term, float(beta))
        scope.op.Add(value, term, outputs=node.output)


def _product(
    scope: BatchScope,
    left: str,
    right: str,
    trans_left: bool,
    trans_right: bool,
    alpha: float = 1.0,
    outputs: Any = None,
) -> str:
    """Write the product of two matrices, at least one of them batched."""
    op = scope.op
    if _is_column(scope, left, right, trans_right):
        return _product_with_column(scope, left, right, trans_left, trans_right, alpha, outputs=outputs)
    if _width(scope, right, trans_right) == 1 and trans_left:
        # (A^T b)^T = b^T A: transposing the column is cheaper
        row = op.Reshape(right, [scope.axis, 1, -1] if scope.is_batched(right) else [1, -1])
        product = op.MatMul(_scaled(op, row, alpha), left)
        return op.Reshape(product, [scope.axis, -1, 1], outputs=outputs)
    if trans_right and not trans_left and _is_smaller(scope, left, right):
        # A B^T = (B A^T)^T: two small transposes instead of a large one
        product = op.MatMul(right, _transposed(scope, left, True))
        return op.Transpose(_scaled(op, product, alpha), perm=[0, 2, 1], outputs=outputs)
    first, second = _transposed(scope, left, trans_left), _transposed(scope, right, trans_right)
    inner = 0 if trans_left else 1
    if scope.shape(left)[inner] == 1:  # outer product
        product = op.Mul(first, second, outputs=outputs if alpha == 1.0 else None)
    else:
        product = op.MatMul(first, second, outputs=outputs if alpha == 1.0 else None)
    return product if alpha == 1.0 else op.Mul(product, float(alpha), outputs=outputs)


def _is_smaller(scope: BatchScope, left: str, right: str) -> bool:
    """Return whether both operands are batched and ``left`` and the product are smaller than ``right``."""
    sizes = (*scope.shape(left), scope.shape(right)[0])
    if not (scope.is_batched(left) and scope.is_batched(right) and all(isinstance(n, int) for n in sizes)):
        return False
    rows, inner, columns = sizes
    return rows * (inner + columns) < columns * inner  # type: ignore[operator]


def _scaled(op: GraphBuilder, name: str, alpha: float) -> str:
    return name if alpha == 1.0 else op.Mul(name, float(alpha))


def _width(scope: BatchScope, right: str, trans: bool) -> int | str | None:
    """Return the number of columns of a right operand."""
    return scope.shape(right)[0 if trans else 1]


def _is_column(scope: BatchScope, left: str, right: str, trans: bool) -> bool:
    """Return whether a shared matrix is multiplied by a batched column."""
    return not scope.is_batched(left) and scope.is_batched(right) and _width(scope, right, trans) == 1


def _product_with_column(
    scope: BatchScope,
    left: str,
    right: str,
    trans_left: bool,
    trans_right: bool,
    alpha: float,
    added: str | None = None,
    outputs: Any = None,
) -> str:
    """Write the products of a shared matrix and batched columns as one Gemm: (A b)^T = b^T A^T."""
    op = scope.op
    rows = op.Reshape(right, [scope.axis, -1])
    terms = [] if added is None else [_as_rows(scope, added)]
    product = op.Gemm(rows, left, *terms, transB=int(not trans_left), alpha=float(alpha))
    return op.Reshape(product, [scope.axis, -1, 1], outputs=outputs)


def _as_rows(scope: BatchScope, added: str) -> str:
    """Return a term that is added to a column, reshaped to a row for each candidate."""
    shape = scope.shape(added)
    if scope.is_batched(added):
        return scope.op.Reshape(added, [scope.axis, -1])
    if len(shape) == 2 and shape[0] != 1:
        return scope.op.Reshape(added, [1, -1])
    return added


def _transposed(scope: BatchScope, name: str, trans: bool) -> str:
    """Return a matrix, or its transpose."""
    if not trans:
        return name
    rows, columns = scope.shape(name)
    if scope.is_batched(name):
        if rows == 1 or columns == 1:
            return scope.op.Reshape(name, [scope.axis, -1, 1] if rows == 1 else [scope.axis, 1, -1])
        return scope.op.Transpose(name, perm=[0, 2, 1])
    return scope.op.Transpose(name, perm=[1, 0])


RULES = {("", "Gemm"): gemm, ("", "MatMul"): matmul}
