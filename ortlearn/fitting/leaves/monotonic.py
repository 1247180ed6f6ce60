"""Trained leaves are projected to the monotonic constraints of their trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...models.capabilities import capability_of
from ...models.parameters import part_of
from ...models.trees.monotonic import MonotonicLeaves, projected_table
from ...problem.problem import Problem
from ...training.state import TrainingState

__all__ = ["with_monotonic_leaves"]


def with_monotonic_leaves(problem: Problem, state: TrainingState) -> TrainingState:
    """Return the state with leaves projected to the monotonic constraints (of regression and two classes).

    Each table is projected by the trees that it belongs to, which may be members of an ensemble.
    """
    if problem.source is None or state.start_kept:
        return state
    projected, trainable = dict[str, np.ndarray](), problem.trainable
    for name, array in state.weights.items():
        known, constraint = trainable.parameters[name], trainable.constraints.get(name)
        if known.role != "table" or known.path is None:
            continue
        part = part_of(problem.source, known.path)
        rule = capability_of(part, MonotonicLeaves)
        signs = None if rule is None else rule.signs(part)
        if rule is None or signs is None or not np.any(signs):
            continue
        values = array.reshape(len(array), -1) if constraint is None else constraint.values(array)
        found = projected_table(rule.nodes(part), signs, values, of_classes=constraint is not None)
        found = found if constraint is None else constraint.free(found)
        projected[name] = found.reshape(array.shape).astype(array.dtype)
    return replace(state, weights={**state.weights, **projected}, updated=None) if projected else state
