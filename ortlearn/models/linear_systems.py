"""Systems of linear equations with symmetric positive definite matrices, solved by elimination."""

from typing import Any

import numpy as np

from ..graphs import GraphBuilder

#: Largest number of equations: elimination takes seven nodes for each.
LARGEST = 256


def solve_positive(
    op: GraphBuilder, matrix: str, right: str, size: int, width: int, dtype: Any = None
) -> tuple[str, list[str]]:
    """Return the solutions of ``matrix @ solution = right``, and pivots whose product is the determinant.

    Gauss-Jordan elimination needs no row exchanges for symmetric positive definite matrices, and is forward
    stable (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, theorem 14.5). A column that is
    eliminated is a unit vector, and is left out.

    Parameters
    ----------
    op : GraphBuilder
        Receives the nodes.
    matrix : str
        Matrices of shape (..., size, size).
    right : str
        Right-hand sides of shape (..., size, width), with the same leading dimensions.
    size, width : int
        Numbers of equations and of right-hand sides.
    dtype : dtype, default=None
        Type of the matrices; that of the builder by default.

    Returns
    -------
    solution : str
        Tensor of shape (..., size, width).
    pivots : list of str
        ``size`` tensors of shape (..., 1, 1).
    """
    identity = np.eye(size, dtype=dtype or op.float_dtype)
    system, pivots = op.Concat(matrix, right, axis=-1), []
    for i in range(size):
        sizes = np.array([1, size - i - 1 + width])
        column, rest = op.Split(system, sizes, axis=-1, n_outputs=2)
        pivots.append(op.Gather(column, [i], axis=-2))
        row = op.Div(op.Gather(rest, [i], axis=-2), pivots[-1])
        system = op.Sub(rest, op.Mul(op.Sub(column, identity[:, i : i + 1]), row))
    return system, pivots
