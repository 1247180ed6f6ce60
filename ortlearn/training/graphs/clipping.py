"""Gradient clipping."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...graphs import GraphBuilder

__all__ = ["clip_gradients"]


def clip_gradients(
    op: GraphBuilder,
    gradients: Mapping[str, str],
    clip_value: float | None = None,
    clip_norm: float | None = None,
) -> dict[str, str]:
    """Write the clipping of the gradients of all weights, by value and then by norm.

    By value, each entry is moved into ``[-clip_value, clip_value]``. By norm, all gradients are
    multiplied by ``min(1, clip_norm / norm)``, where ``norm`` is the euclidean norm of all their
    entries together.

    Notes
    -----
    ``torch.nn.utils.clip_grad_norm_`` divides by ``norm + 1e-6``, to avoid a division by zero; here the
    quotient is exact. Gradients within the bound are not changed, not even by rounding. Non-finite ones stay
    non-finite, so that the training detects them.

    References
    ----------
    Pascanu, R., Mikolov, T. and Bengio, Y., "On the difficulty of training recurrent neural
    networks", ICML 2013, algorithm 1.

    Examples
    --------
    >>> from ortlearn.graphs import GraphBuilder
    >>> from ortlearn.training.graphs.clipping import clip_gradients
    >>> op = GraphBuilder()
    >>> clip_gradients(op, {"coef": "coef_grad"}, clip_value=0.5)
    {'coef': 'Clip_0'}
    """
    clipped = dict(gradients)
    if clip_value is not None:
        bound = float(clip_value)
        clipped = {weight: op.Clip(name, -bound, bound) for weight, name in clipped.items()}
    if clip_norm is not None:
        factor = _factor(op, list(clipped.values()), float(clip_norm))
        clipped = {weight: op.Mul(name, factor) for weight, name in clipped.items()}
    return clipped


def _factor(op: GraphBuilder, gradients: list[str], bound: float) -> str:
    """Write ``min(1, bound / norm)``.

    Entries are divided by the largest one, whose square might overflow. If all are zero, the quotient is
    infinite and the factor one.
    """
    tiny = float(np.finfo(op.float_dtype).tiny)
    largest = op.Max(*(op.ReduceMax(op.Abs(name), keepdims=0) for name in gradients), tiny)
    squares = [op.ReduceSumSquare(op.Div(name, largest), keepdims=0) for name in gradients]
    norm = op.Sqrt(op.Sum(*squares) if len(squares) > 1 else squares[0])
    return op.Min(op.Div(op.Div(bound, largest), norm), 1.0)
