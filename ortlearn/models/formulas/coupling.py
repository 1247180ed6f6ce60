"""Probabilities of classes from probabilities of pairs of classes."""

# Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling", JMLR 2004,
# second method: with r_ij the probability of class i among i and j, p minimises on the simplex
# sum_i sum_(j != i) (r_ji p_i - r_ij p_j)^2 = 2 p'Qp, Q_ii = sum_(j != i) r_ji^2, Q_ij = -r_ji r_ij.

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from onnx import TensorProto

from ...graphs import GraphBuilder
from .distances import reduced
from .linear_systems import elem_type, iterate, solve_positive

PAIR_BOUND = 1e-7  # distance from 0 and 1 at which libsvm clips the probability of a pair
#: libsvm stops once the residuals times the number of classes are smaller, or after this number of sweeps.
TOLERANCE, MAX_SWEEPS = 0.005, 100
STEP = "pairwise_coupling"  # name of the loop body, which identifies the loop


def pair_table(n_classes: int) -> np.ndarray:
    """Return a matrix of shape (n_pairs, n_classes), 1 for the first class of a pair, -1 for the second."""
    unit = np.eye(n_classes, dtype=np.int32)
    return np.array([unit[i] - unit[j] for i, j in combinations(range(n_classes), 2)])


def disagreement(op: GraphBuilder, first: str, n_classes: int) -> str:
    """Return Q, (n, n_classes, n_classes), from the probabilities of the first class of each pair."""
    first = op.Clip(first, PAIR_BOUND, 1 - PAIR_BOUND)
    second = op.Sub(1.0, first)
    pairs = list(combinations(range(n_classes), 2))
    table = np.zeros((3, len(pairs), n_classes, n_classes), dtype=np.int32)
    for pair, (i, j) in enumerate(pairs):
        table[0, pair, j, j] = table[1, pair, i, i] = 1
        table[2, pair, [i, j], [j, i]] = -1
    products = op.Concat(op.Mul(first, first), op.Mul(second, second), op.Mul(first, second), axis=1)
    # a cast integer constant: float matrices in products are recognised as weights
    spread = op.Cast(table.reshape(3 * len(pairs), -1), to=elem_type(op))
    return op.Reshape(op.MatMul(products, spread), [0, n_classes, n_classes])


def coupled_probabilities(op: GraphBuilder, matrix: str, n_classes: int) -> str:
    """Return probabilities, (n, n_classes), by coordinate descent with the stopping rule of libsvm."""
    identity = np.eye(n_classes, dtype=op.float_dtype)
    diagonal = op.ReduceSum(op.Mul(matrix, identity), [2], keepdims=0)
    start = op.Add(op.Mul(diagonal, 0.0), 1 / n_classes), (elem_type(op), [None, n_classes])
    active = op.Greater(op.ReduceSum(diagonal, [1], keepdims=1), -1.0), (TensorProto.BOOL, [None, 1])
    step = partial(_coordinate_step, matrix, diagonal, n_classes)
    result = iterate(op, STEP, MAX_SWEEPS * n_classes, [start, active], step)[0]
    return op.Reshape(result, [0, n_classes])  # onnx infers no shapes of loop states


def _coordinate_step(
    matrix: str, diagonal: str, n_classes: int, op: GraphBuilder, number: str, p: str, active: str
) -> tuple[str, ...]:
    """Append ``d_i = (p'Qp - (Qp)_i) / Q_ii; p_i += d_i; p /= 1 + d_i`` for samples not converged."""
    column = op.Mod(number, np.array(n_classes))
    product = op.Squeeze(op.MatMul(matrix, op.Unsqueeze(p, [2])), [2])
    residual = op.Sub(op.ReduceSum(op.Mul(p, product), [1], keepdims=1), product)
    small = op.Less(reduced(op, "ReduceMax", op.Abs(residual), 1), TOLERANCE / n_classes)
    converged = op.And(small, op.Equal(column, np.array(0)))  # checked once per sweep
    still = op.And(active, op.Not(converged))
    unit = op.Gather(np.eye(n_classes, dtype=op.float_dtype), column, axis=0)
    step = op.Mul(op.Mul(op.Div(residual, diagonal), unit), op.Cast(still, to=elem_type(op)))
    moved = op.Div(op.Add(p, step), op.Add(op.ReduceSum(step, [1], keepdims=1), 1.0))
    condition = op.Greater(op.ReduceSum(op.Cast(still, to=TensorProto.FLOAT), keepdims=0), np.float32(0))
    return condition, moved, still


def least_disagreement(op: GraphBuilder, matrix: str, n_classes: int, dtype: Any = None) -> str:
    """Return the exact minimum of p'Qp, of shape (n, n_classes); it is differentiable, for training."""
    # on the simplex p'Qp + 1 = p'(Q + ee')p, e = (1, ..., 1): p = (Q + ee')^-1 e divided by its sum
    zero, one = (np.array(value, dtype or op.float_dtype) for value in (0, 1))
    bordered = op.Add(matrix, one)
    ones = op.Add(op.Mul(op.Slice(bordered, [0], [1], [2]), zero), one)
    solution = op.Squeeze(solve_positive(op, bordered, ones, n_classes, 1, zero.dtype)[0], [2])
    return op.Div(solution, op.ReduceSum(solution, [1], keepdims=1))
