"""Trained leaves are projected to the monotonic constraints of their trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...models import fitted_part
from ...models.capabilities import capability_of
from ...models.trees.monotonic import MonotonicLeaves, projected_table
from ...problem.problem import Problem
from ...training.state import TrainingState

__all__ = ["with_monotonic_leaves"]


def with_monotonic_leaves(problem: Problem, state: TrainingState) -> TrainingState:
    """Return the state with leaves projected to the monotonic constraints (of regression and two classes)."""
    part = None if problem.source is None else fitted_part(problem.source)
    rule = None if part is None else capability_of(part, MonotonicLeaves)
    signs = None if rule is None else rule.signs(part)
    if rule is None or signs is None or not np.any(signs) or state.start_kept:
        return state
    weights, trainable, nodes = dict(state.weights), problem.trainable, rule.nodes(part)
    for name in [own for own in weights if trainable.parameters[own].role == "table"]:
        array, constraint = weights[name], trainable.constraints.get(name)
        values = array.reshape(len(array), -1) if constraint is None else constraint.values(array)
        found = projected_table(nodes, signs, values, of_classes=constraint is not None)
        found = found if constraint is None else constraint.free(found)
        weights[name] = found.reshape(array.shape).astype(array.dtype)
    return replace(state, weights=weights, updated=None)
