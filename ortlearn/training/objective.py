"""Nodes of the objective of a batch: weighted mean of the losses, plus penalty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import plugins
from ..graphs import GraphBuilder
from .task import TrainingTask

__all__ = ["add_terms", "mean_loss", "penalty_terms"]


def mean_loss(op: GraphBuilder, rows: str, sample_weight: str | None) -> str:
    """Write ``sum(w * l) / sum(w)``, or the mean without weights."""
    if sample_weight is None:
        return op.ReduceMean(rows, keepdims=0)
    total = op.ReduceSum(op.Mul(rows, sample_weight), keepdims=0)
    tiny = float(np.finfo(op.float_dtype).tiny)
    return op.Div(total, op.Max(op.ReduceSum(sample_weight, keepdims=0), tiny))


def penalty_terms(op: GraphBuilder, task: TrainingTask, smooth_only: bool = False) -> dict[str, str]:
    """Write the penalty of each weight that has one, by weight."""
    found = {}
    for name in task.graph.weights:
        parts = task.penalties_of(name)
        if parts:
            # The C++ builder fails for a weight that is used twice in one node and nowhere else.
            weight = op.Identity(name)
            known = op.type(name)
            if known is not None:
                op.set_type(weight, *known)
            smooth = [smooth_only and task.acts_by_step(part) for part in parts]
            with plugins.blamed(task.objective.penalty, "forward"):
                terms = [
                    part.smooth_part(op, weight) if only else part.forward(op, weight)
                    for part, only in zip(parts, smooth, strict=True)
                ]
            written = [term for term in terms if term is not None]
            if written:
                found[name] = add_terms(op, written)
    return found


def add_terms(op: GraphBuilder, terms: Sequence[str]) -> str:
    """Write the sum of scalars."""
    total = terms[0]
    for term in terms[1:]:
        total = op.Add(total, term)
    return total
