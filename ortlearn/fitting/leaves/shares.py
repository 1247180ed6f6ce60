"""Class shares in the leaves of a forest, averaged with those of new samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...comparison.measures import weights_of
from ...data.samples import Data
from ...losses import LogLoss
from ...models.constraints.sets import ClosedSimplex
from ...penalties import NoPenalty
from ...problem.problem import Problem
from ...training.graphs.task import TrainingTask
from ...training.optimisations.table_rows import looked_up_tables

__all__ = ["LeafShares"]


@dataclass(frozen=True)
class LeafShares:
    """A forest whose only trained weights are the class shares of the leaves.

    The loss is not convex in the shares, and has kinks where one of them is zero, as most are. A weighted
    mean of old shares and frequencies in the new samples has neither problem, and takes no iterations.
    """

    problem: Problem
    task: TrainingTask  # its features are the leaves that samples reach
    table: str  # weight with the shares, of shape (n_leaves, n_classes)
    feature: str  # feature with the leaf indices, of shape (n_samples, n_trees)

    @classmethod
    def of(cls, problem: Problem, task: TrainingTask, data: Data) -> LeafShares | None:
        """Return the shares of a forest; None for other models, and for a given loss."""
        table, *others = task.graph.weights
        constraint = problem.trainable.constraints.get(table)
        if not problem.has_default_loss or not isinstance(problem.loss, LogLoss) or others:
            return None
        if not all(isinstance(part, NoPenalty) for part in task.penalties_of(table)):
            return None
        is_forest = isinstance(constraint, ClosedSimplex) and constraint.grows and len(constraint.sizes) == 1
        if not is_forest or problem.encoder.class_indices(data.y) is None:
            return None
        tables = looked_up_tables(task, data)
        return None if table not in tables else cls(problem, task, table, tables[table])

    def averaged(self, start: Mapping[str, np.ndarray], data: Data, strength: float) -> dict[str, np.ndarray]:
        """Return weights with averaged shares; the old ones of a leaf count as ``strength`` samples."""
        constraint: Any = self.problem.trainable.constraints[self.table]
        free = start[self.table]
        leaves, classes = self.task.inputs(data)[self.feature], self.problem.encoder.class_indices(data.y)
        assert classes is not None
        flat = (leaves * free.shape[1] + classes[:, np.newaxis]).ravel()
        weights = np.repeat(weights_of(data), leaves.shape[1])
        counts = np.bincount(flat, weights, minlength=free.size).reshape(free.shape)
        total = counts.sum(axis=1, keepdims=True)
        reached = total[:, 0] > 0
        shares = (strength * constraint.values(free[reached]) + counts[reached]) / (strength + total[reached])
        found = np.array(free)
        found[reached] = constraint.free(shares)
        return {**start, self.table: found}
