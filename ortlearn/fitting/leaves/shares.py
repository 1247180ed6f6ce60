"""Class shares in the leaves of trees, averaged with those of new samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...comparison.measures import weights_of
from ...data.samples import Data
from ...losses import LogLoss
from ...models import fitted_part
from ...models.capabilities import Bags, capability_of
from ...models.constraints.sets import ClosedSimplex
from ...penalties import NoPenalty
from ...problem.problem import Problem
from ...training.graphs.task import TrainingTask
from ...training.optimisations.table_rows import looked_up_tables

__all__ = ["LeafShares"]


@dataclass(frozen=True)
class LeafShares:
    """Trees, or a mean of trees, whose only trained weights are the class shares of leaves.

    The loss is not convex in the shares, and has kinks where one of them is zero, as most are: those of a
    single tree have no gradient there. A weighted mean of old shares and frequencies in the new samples has
    neither problem, and takes no iterations.
    """

    problem: Problem
    task: TrainingTask  # its features are the leaves that samples reach
    # For each weight with shares, of shape (n_leaves, n_classes), the feature with the leaf indices, of shape
    # (n_samples, n_trees).
    tables: Mapping[str, str]

    @classmethod
    def of(cls, problem: Problem, task: TrainingTask, data: Data) -> LeafShares | None:
        """Return the shares of trees; None for other models, and for a given loss."""
        part = None if problem.source is None else fitted_part(problem.source)
        is_mean = len(task.graph.weights) == 1 or (part is not None and capability_of(part, Bags) is not None)
        has_loss = problem.has_default_loss and isinstance(problem.loss, LogLoss)
        if not (is_mean and has_loss) or problem.encoder.class_indices(data.y) is None:
            return None
        sizes = (len(problem.targets.classes),)
        for name in task.graph.weights:
            constraint = problem.trainable.constraints.get(name)
            has_shares = isinstance(constraint, ClosedSimplex) and constraint.sizes == sizes
            if not has_shares or not all(isinstance(own, NoPenalty) for own in task.penalties_of(name)):
                return None
        tables = looked_up_tables(task, data)
        return cls(problem, task, tables) if tables.keys() >= set(task.graph.weights) else None

    def averaged(self, start: Mapping[str, np.ndarray], data: Data, strength: float) -> dict[str, np.ndarray]:
        """Return weights with averaged shares; the old ones of a leaf count as ``strength`` samples."""
        found, features = dict(start), self.task.inputs(data)
        classes: Any = self.problem.encoder.class_indices(data.y)
        for table in self.task.graph.weights:
            constraint: Any = self.problem.trainable.constraints[table]
            free, leaves = start[table], features[self.tables[table]]
            flat = (leaves * free.shape[1] + classes[:, np.newaxis]).ravel()
            summed = np.bincount(flat, np.repeat(weights_of(data), leaves.shape[1]), minlength=free.size)
            counts = summed.reshape(free.shape)
            total = counts.sum(axis=1, keepdims=True)
            shares = (strength * constraint.values(free) + counts) / (strength + total)
            found[table] = np.where(total > 0, constraint.free(shares).astype(free.dtype), free)
        return found
