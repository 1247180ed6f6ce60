"""Descent on one coordinate after the other, for the codes of all samples at once."""

from collections.abc import Callable

import numpy as np

from ..graphs import GraphBuilder

#: Takes builder, coordinate, slope and curvature along it, and returns the coordinate at the minimum.
Minimum = Callable[[GraphBuilder, str, str, str], str]


def sweep(
    op: GraphBuilder, codes: str, gram: str, correlations: str, size: int, minimum: Minimum
) -> tuple[str, list[tuple[str, str, str]]]:
    """Append a pass over the coordinates of ``c G c' / 2 - r c'`` for each sample.

    Wu, T. T. and Lange, K., "Coordinate descent algorithms for lasso penalized regression", Annals of
    Applied Statistics 2, 2008.

    Parameters
    ----------
    op : GraphBuilder
        Receives the nodes.
    codes, correlations : str
        c and r of all samples, of shape (n, size).
    gram : str
        G of shape (size, size). A coordinate without curvature stays where it is.
    size : int
        Number of coordinates.
    minimum : callable
        Returns a coordinate at the minimum, with the terms that are not in the quadratic function.

    Returns
    -------
    codes : str
        c after the pass.
    steps : list of (str, str, str)
        For each coordinate its value before, its value after and the slope before, of shape (n, 1).
    """
    slopes, steps = op.Sub(op.MatMul(codes, gram), correlations), []
    for i in range(size):
        row = op.Gather(gram, [i], axis=0)
        curvature = op.Gather(row, [i], axis=1)
        flat = op.LessOrEqual(curvature, 0.0)
        before, slope = (op.Gather(name, [i], axis=1) for name in (codes, slopes))
        after = minimum(op, before, slope, op.Where(flat, np.ones((), op.float_dtype), curvature))
        after = op.Where(flat, before, after)
        slopes = op.Add(slopes, op.Mul(op.Sub(after, before), row))
        steps.append((before, after, slope))
    return op.Concat(*(after for _, after, _ in steps), axis=1), steps
