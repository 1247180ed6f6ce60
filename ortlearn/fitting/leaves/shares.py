"""Class shares in the leaves of trees, averaged with those of new samples, and mixed with constant ones."""

from __future__ import annotations

import math
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
    neither problem, and takes no iterations. For another loss than that of the trees, shares are mixed with
    constant ones (:class:`~ortlearn.fitting.leaves.mixtures.Mixtures`).
    """

    problem: Problem
    task: TrainingTask  # its features are the leaves that samples reach
    # For each weight with shares, of shape (n_leaves, n_classes), the feature with the leaf indices, of shape
    # (n_samples, n_trees).
    tables: Mapping[str, str]
    is_own: bool  # whether the loss is that of the trees

    @classmethod
    def of(cls, problem: Problem, task: TrainingTask, data: Data) -> LeafShares | None:
        """Return the shares of trees; None for other models, and for a loss in Python."""
        part = None if problem.source is None else fitted_part(problem.source)
        is_mean = len(task.graph.weights) == 1 or (part is not None and capability_of(part, Bags) is not None)
        loss, is_own = problem.loss, problem.has_default_loss
        has_loss = isinstance(loss, LogLoss) if is_own else loss is not None and not loss.in_python
        if not (is_mean and has_loss) or problem.encoder.class_indices(data.y) is None:
            return None
        sizes = (len(problem.targets.classes),)
        for name in task.graph.weights:
            constraint = problem.trainable.constraints.get(name)
            has_shares = isinstance(constraint, ClosedSimplex) and constraint.sizes == sizes
            if not has_shares or not all(isinstance(own, NoPenalty) for own in task.penalties_of(name)):
                return None
        tables = looked_up_tables(task, data)
        return cls(problem, task, tables, is_own) if tables.keys() >= set(task.graph.weights) else None

    def averaged(
        self,
        start: Mapping[str, np.ndarray],
        data: Data,
        strength: float,
        share: float = 0.0,
        constant: tuple[float, ...] = (),
    ) -> dict[str, np.ndarray]:
        """Return weights with averaged shares; the old ones of a leaf count as ``strength`` samples.

        Then ``constant`` shares get a ``share``.
        """
        found = dict(start) if math.isinf(strength) else self._averaged(start, data, strength)
        for table in self.task.graph.weights if share else ():
            constraint: Any = self.problem.trainable.constraints[table]
            values = (1 - share) * constraint.values(found[table]) + share * np.array(constant)
            found[table] = constraint.free(values).astype(start[table].dtype)
        return found

    def _averaged(
        self, start: Mapping[str, np.ndarray], data: Data, strength: float
    ) -> dict[str, np.ndarray]:
        """Return weights with averaged shares."""
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
