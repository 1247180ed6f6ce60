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

    Matrices have the shape (..., size, size) and the type of the builder by default, right-hand sides and
    solutions (..., size, width), and each of ``size`` pivots (..., 1, 1). Gauss-Jordan elimination needs no
    row exchanges here, and is forward stable (Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
    theorem 14.5). A column that is eliminated is a unit vector, and is left out.
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
