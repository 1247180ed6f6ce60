"""The objective of a batch as nodes: weighted mean of the losses, plus penalty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..graphs import GraphBuilder
from ..penalties import BasePenalty

__all__ = ["add_terms", "mean_loss", "penalty_terms"]


def mean_loss(op: GraphBuilder, rows: str, sample_weight: str | None) -> str:
    """Write ``sum(w * l) / sum(w)``, or the mean where there are no weights.

    Parameters
    ----------
    op : GraphBuilder
        Where the nodes go.
    rows : str
        Losses of the rows, of shape (n,).
    sample_weight : str or None
        Their weights, of shape (n,). A batch whose weights are all zero has an objective of zero.

    Returns
    -------
    str
        Scalar of shape ().
    """
    if sample_weight is None:
        return op.ReduceMean(rows, keepdims=0)
    total = op.ReduceSum(op.Mul(rows, sample_weight), keepdims=0)
    tiny = float(np.finfo(op.float_dtype).tiny)
    return op.Div(total, op.Max(op.ReduceSum(sample_weight, keepdims=0), tiny))


def penalty_terms(
    op: GraphBuilder, penalty: BasePenalty, intercepts: Mapping[str, bool], smooth_only: bool = False
) -> list[str]:
    """Write the penalty of every weight it applies to.

    Parameters
    ----------
    op : GraphBuilder
        Where the nodes go.
    penalty : BasePenalty
        Penalty.
    intercepts : mapping of str to bool
        Whether a weight, by name, is an intercept.
    smooth_only : bool, default=False
        Whether to write only what is differentiated.

    Returns
    -------
    list of str
        Scalars of shape ().
    """
    terms = []
    for name, is_intercept in intercepts.items():
        if penalty.applies_to(is_intercept, name):
            # A weight used twice in one node, and nowhere else, makes the C++ builder fail.
            weight = op.Identity(name)
            known = op.type(name)
            if known is not None:
                op.set_type(weight, *known)
            terms.append(penalty.smooth_part(op, weight) if smooth_only else penalty.forward(op, weight))
    return [term for term in terms if term is not None]


def add_terms(op: GraphBuilder, terms: Sequence[str]) -> str:
    """Write the sum of scalars."""
    total = terms[0]
    for term in terms[1:]:
        total = op.Add(total, term)
    return total
