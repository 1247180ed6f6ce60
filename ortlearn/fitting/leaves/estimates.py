"""Values of leaves for any loss, estimated from samples that the trees have not seen.

A random forest weights the training samples of a new one by the leaves that they share (Meinshausen, N.,
"Quantile regression forests", JMLR 7 (2006), 983-999), and the value with the lowest weighted loss estimates
the minimiser of the loss, such as a quantile (Athey, S., Tibshirani, J. and Wager, S., "Generalized random
forests", Annals of Statistics 47 (2019), 1148-1178). A forest predicts means of leaves: each leaf gets the
mean of these estimates over its samples, which are found without the trees that have seen the sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from ...comparison.measures import Weights, weights_of
from ...data.samples import Data
from ...inference.score_runner import ScoreRunner
from ...problem.configuration import Runtime
from ...problem.problem import Problem
from ...training.graphs.names import MEMBERS
from ...training.graphs.task import TrainingTask
from ...training.optimisations.table_rows import looked_up_tables
from .shifts import VALUES, losses_at, shifted
from .unseen_members import members_of

__all__ = ["LeafEstimates"]

#: Largest number of losses that are stored.
LOSSES = 2**25
#: Fewest values, for many samples.
FEWEST_VALUES = 32
#: Smallest weight of other samples in a leaf, relative to the largest weight.
TINY = 1e-6


@dataclass(frozen=True)
class _Curves:
    """Losses at some changes of the scores of one output, of shape (n_samples, n_values)."""

    values: np.ndarray
    local: np.ndarray  # weighted means over the samples that share leaves with each sample
    mean: np.ndarray  # mean over all samples, of shape (n_values,)

    def minima(self, pooled: float) -> np.ndarray:
        """Return the values with the lowest loss, float64 of shape (n_samples + 1,), the last one for all."""
        curves = np.vstack([(1 - pooled) * self.local + pooled * self.mean, self.mean]).astype(np.float64)
        if len(self.values) < 3:
            return self.values[curves.argmin(axis=1)]
        middle = np.clip(curves.argmin(axis=1), 1, len(self.values) - 2)
        rows = np.arange(len(curves))
        (x0, x1, x2), (f0, f1, f2) = zip(
            *((self.values[middle + i], curves[rows, middle + i]) for i in (-1, 0, 1)), strict=True
        )
        left, right = (x1 - x0) * (f1 - f2), (x1 - x2) * (f1 - f0)  # vertex of the parabola
        with np.errstate(divide="ignore", invalid="ignore"):
            found = x1 - 0.5 * ((x1 - x0) * left - (x1 - x2) * right) / (left - right)
        return np.where(np.isfinite(found), np.clip(found, x0, x2), x1)


@dataclass(frozen=True)
class _Neighbours:
    """Samples that share the leaves of a tree with those that it has not seen."""

    reached: np.ndarray  # samples that the tree has not seen
    leaves: np.ndarray  # their leaves
    own: np.ndarray  # their weights among the samples of their leaves
    totals: np.ndarray  # weights of the others
    of_leaf: csr_matrix  # weights of the samples of each leaf

    @classmethod
    def of(cls, leaves: np.ndarray, is_unseen: np.ndarray, weights: np.ndarray) -> _Neighbours:
        """Return the neighbours in a tree, from the leaves of all samples."""
        given, leaves = np.where(is_unseen, 0.0, weights), leaves - leaves.min()
        own = np.zeros(len(leaves))
        if not given.any():  # all samples are new: others of them
            given = own = np.where(is_unseen, weights, 0.0)
        ends = np.cumsum(np.bincount(leaves))
        order = np.argsort(leaves, kind="stable")
        parts = given[order].astype(np.float32), order, np.concatenate([[0], ends])
        totals = np.bincount(leaves, given)[leaves] - own
        reached = np.flatnonzero(is_unseen & (totals > TINY * given.max()))
        of_leaf = csr_matrix(parts, shape=(len(ends), len(leaves)))
        return cls(reached, leaves[reached], own[reached], totals[reached], of_leaf)


@dataclass(frozen=True)
class LeafEstimates:
    """Estimates of the leaves of a bagged ensemble of regression trees, which are its only weights."""

    runner: ScoreRunner
    task: TrainingTask
    start: Weights
    tables: dict[str, str]  # feature with the leaf indices, of shape (n_samples, n_trees), by weight
    members: dict[str, int]  # first member, by weight
    offset: float  # change of all values that changes each score by one
    _last: dict[Any, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls, problem: Problem, runtime: Runtime, task: TrainingTask, start: Weights, data: Data, offset: float
    ) -> LeafEstimates | None:
        """Return the estimates of a model; None if the samples of its trees are unknown."""
        tables, inputs = looked_up_tables(task, data), task.inputs(data)
        n_members = task.graph.n_members
        n_trees = sum(inputs[own].shape[1] for own in tables.values())
        if members_of(problem) is None or tables.keys() != start.keys() or n_trees != (n_members or n_trees):
            return None
        paths = {name: problem.trainable.parameters[name].path or () for name in tables}
        order = sorted(tables, key=lambda name: [_number(entry) for entry in paths[name]])
        widths = [inputs[tables[name]].shape[1] for name in order]
        members = dict(zip(order, np.cumsum(widths) - widths, strict=True))
        return cls(ScoreRunner(task, runtime), task, start, tables, members, offset)

    def estimated(self, data: Data, base: float, pooled: float) -> dict[str, np.ndarray]:
        """Return weights: ``base`` times the start, and the estimated changes that lower the losses.

        ``pooled`` is the weight of all samples, besides those that share leaves.
        """
        if self._last.get("key") != (id(data), base):
            self._last.update(key=(id(data), base), data=data, curves=self._curves(data, base))
        minima = np.stack([own.minima(pooled) for own in self._last["curves"]], axis=1)
        found, weights = {name: base * array for name, array in self.start.items()}, weights_of(data)
        for name, feature in self.tables.items():
            numbers, rows = self.task.inputs(data)[feature], found[name].reshape(len(found[name]), -1)
            flat, each = numbers.ravel(), np.repeat(weights, numbers.shape[1])
            counts = np.bincount(flat, each, minlength=len(rows))
            for output in range(rows.shape[1]):
                changes = np.repeat(minima[:-1, output], numbers.shape[1])
                sums = np.bincount(flat, each * changes, minlength=len(rows))
                means = np.where(counts > 0, sums / np.maximum(counts, 1e-300), minima[-1, output])
                rows[:, output] += self.offset * means
            found[name] = rows.reshape(found[name].shape).astype(self.start[name].dtype)
        if sum(self.task.inputs(data)[own].shape[1] for own in self.tables.values()) == 1:
            return found  # the leaves of a single tree depend on the labels of their samples
        return shifted(self.runner, found, dict.fromkeys(found, self.offset), data)

    def _curves(self, data: Data, base: float) -> list[_Curves]:
        """Return the losses of each output at changes of ``base`` times the scores of the start."""
        scores, weights = base * self.runner.scores(self.start, data), weights_of(data)
        size = int(np.clip(LOSSES // len(data), FEWEST_VALUES, VALUES))
        found = []
        for output, residuals in enumerate((data.y.reshape(scores.shape) - scores).T):
            values = np.unique(np.quantile(residuals[weights > 0], np.linspace(0, 1, size)))
            losses = losses_at(self.runner, data, scores, output, values)
            mean = (weights @ losses) / weights.sum()
            found.append(_Curves(values.astype(np.float64), self._local(data, losses, mean), mean))
        return found

    def _local(self, data: Data, losses: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Return mean losses over the samples that share leaves, in trees that have not seen a sample."""
        sums, counts = np.zeros_like(losses), np.zeros(len(data))
        for shared in self._neighbours(data):
            reached, own, totals = shared.reached, shared.own, shared.totals
            of_others = (shared.of_leaf @ losses)[shared.leaves]
            if own.any():
                of_others -= own[:, np.newaxis] * losses[reached]
            sums[reached] += of_others / totals[:, np.newaxis]
            counts[reached] += 1
        return np.where(counts[:, np.newaxis] > 0, sums / np.maximum(counts, 1)[:, np.newaxis], mean)

    def _neighbours(self, data: Data) -> list[_Neighbours]:
        """Return the samples that share leaves, in each tree."""
        if self._last.get("samples") is not data:
            weights = weights_of(data)
            trees = [_Neighbours.of(*tree, weights) for tree in self._trees(data)]
            self._last.update(samples=data, trees=trees)
        return self._last["trees"]

    def _trees(self, data: Data) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, for each tree, the leaves of all samples, and whether it has not seen them."""
        inputs = self.task.inputs(data)
        for name, first in self.members.items():
            for number, leaves in enumerate(inputs[self.tables[name]].T):
                unseen = (
                    inputs[MEMBERS][:, first + number] > 0 if MEMBERS in inputs else np.ones(len(data), bool)
                )
                yield leaves, unseen


def _number(entry: str) -> tuple[int, str]:
    """Return a key that sorts indices in a path by their value."""
    return (int(entry[1:-1]), "") if entry[1:-1].isdigit() else (0, entry)
