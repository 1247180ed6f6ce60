"""Codes of a lasso: the minimum of a squared error and a sum of absolute values."""

from functools import partial
from typing import Any

import numpy as np

from ..graphs import GraphBuilder
from .kernels import products
from .linear_systems import in_double, iterate, solve_positive
from .writer import ModelWriter

#: The signs of a lasso are taken once no entry moves in a step by more than this power of the machine
#: epsilon, relative to the largest, or after so many steps.
CONVERGED, MAX_STEPS = 0.75, 100_000
#: A matrix is squared so many times to find the largest eigenvalue.
SQUARINGS = 4
#: Machine epsilons added to the diagonal of a Gram matrix, relative to its largest number.
RIDGE = 8
#: Name of the graph of a step.
STEP = "lasso_step"


def shrunk(op: GraphBuilder, values: str, amount: Any, positive: bool) -> str:
    """Return values moved toward zero by an amount, those that are nearer set to zero."""
    above = op.Relu(op.Sub(values, amount))
    return above if positive else op.Sub(above, op.Relu(op.Sub(op.Neg(values), amount)))


def lasso_codes(
    op: ModelWriter, x: str, rows: str, shape: tuple[int, int], alpha: float, positive: bool
) -> str:
    """Append the minimum c of ``|x - c D|^2 / 2 + alpha |c|`` for samples x and a dictionary D of a shape.

    With the signs s of c, those after proximal gradient steps, it solves ``(D D')_s c_s = (D x - alpha s)_s``
    (Osborne, Presnell and Turlach, "On the LASSO and its dual", Journal of Computational and Graphical
    Statistics 9, 2000).
    """
    gram, correlations = products(op, rows, rows), products(op, x, rows)
    above, below = _signs(op, x, rows, shape, alpha, positive)
    signs, chosen = op.Sub(above, below), op.Add(above, below)
    pairs = op.Mul(op.Unsqueeze(chosen, [2]), op.Unsqueeze(chosen, [1]))
    right = op.Mul(op.Sub(correlations, op.Mul(signs, alpha)), chosen)
    matrix = with_diagonal(op, op.Mul(gram, pairs), op.Unsqueeze(chosen, [2]), shape[0])
    solution, _ = solve_positive(op, matrix, op.Unsqueeze(right, [2]), shape[0], 1)
    return op.Squeeze(solution, [2])


def with_diagonal(op: ModelWriter, matrix: str, ones: str, size: int) -> str:
    """Append Gram matrices with ones on the diagonal of atoms that are not in use.

    A few machine epsilons on that of others give an atom that is there twice half the entry each time.
    """
    tiny = RIDGE * float(np.finfo(op.float_dtype).eps)
    ridge = op.Mul(op.ReduceMax(matrix, [1, 2], keepdims=1), tiny)
    added = op.Add(op.Sub(1.0, ones), ridge)
    return op.Add(matrix, op.Mul(added, np.eye(size, dtype=op.float_dtype)))


def _signs(
    op: ModelWriter, x: str, rows: str, shape: tuple[int, int], alpha: float, positive: bool
) -> tuple[str, str]:
    """Append where codes near the minimum, computed in float64, are above and below zero."""
    size, n_features = shape
    with in_double(op, x, rows) as (x, rows):
        gram, correlations = products(op, rows, rows), products(op, x, rows)
        length = op.Reciprocal(_largest_eigenvalue(op, gram))
        zeros = op.Mul(correlations, 0.0)
        ones = op.Add(op.ReduceSum(zeros, [1], keepdims=1), 1.0)
        kinds = [(op.elem_type, [None, width]) for width in (size, size, 1)]
        step = partial(_step, gram, correlations, length, alpha, positive)
        start = list(zip((zeros, zeros, ones), kinds, strict=True))
        codes = op.Reshape(iterate(op, STEP, MAX_STEPS, start, step)[0], [-1, size])
        if size > n_features:  # more atoms than features depend on each other
            sizes = op.Abs(codes)
            least = op.Gather(op.TopK(sizes, [n_features], axis=1, n_outputs=2)[0], [n_features - 1], axis=1)
            codes = op.Where(op.Less(sizes, least), 0.0, codes)
        above, below = op.Greater(codes, 0.0), op.Less(codes, 0.0)
    return op.Cast(above, to=op.elem_type), op.Cast(below, to=op.elem_type)


def _largest_eigenvalue(op: ModelWriter, gram: str) -> str:
    """Append a bound of the largest eigenvalue: a root of the largest row sum of sizes of a power."""
    scale = op.ReduceMax(op.ReduceSum(op.Abs(gram), [1], keepdims=0), keepdims=0)
    power = op.Div(gram, scale)
    for _ in range(SQUARINGS):
        power = op.MatMul(power, power)
    bound = op.ReduceMax(op.ReduceSum(op.Abs(power), [1], keepdims=0), keepdims=0)
    return op.Mul(scale, op.Pow(bound, 1 / 2**SQUARINGS))


def _step(
    gram: str,
    correlations: str,
    length: str,
    alpha: float,
    positive: bool,
    op: GraphBuilder,
    number: str,
    codes: str,
    ahead: str,
    momentum: str,
) -> tuple[str, ...]:
    """Append a proximal gradient step with momentum and restarts (Beck and Teboulle, SIAM 2009)."""
    slope = op.Sub(op.MatMul(ahead, gram), correlations)
    result = shrunk(op, op.Sub(ahead, op.Mul(slope, length)), op.Mul(length, alpha), positive)
    step, moved = op.Sub(ahead, result), op.Sub(result, codes)
    uphill = op.Greater(op.ReduceSum(op.Mul(step, moved), [1], keepdims=1), 0.0)
    momentum = op.Where(uphill, 1.0, momentum)
    following = op.Mul(op.Add(op.Sqrt(op.Add(op.Mul(op.Mul(momentum, momentum), 4.0), 1.0)), 1.0), 0.5)
    rate = op.Where(uphill, 0.0, op.Div(op.Sub(momentum, 1.0), following))
    largest, bound = (op.ReduceMax(op.Abs(name), keepdims=0) for name in (step, result))
    least = float(np.finfo(op.float_dtype).eps) ** CONVERGED
    going = op.Greater(largest, op.Mul(bound, least))
    return going, result, op.Add(result, op.Mul(moved, rate)), following
