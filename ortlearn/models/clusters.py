"""Clusters: distances of samples to centres."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..losses import RowObjective
from .base import ModelDefinition
from .distances import guarded_sqrt, pairwise_distances
from .objectives import Objective, elastic
from .scores import Scores
from .writer import ModelWriter


class KMeansDefinition(ModelDefinition):
    """KMeans and MiniBatchKMeans: the nearest centre.

    The loss of a sample is its squared distance to that centre; the sum over samples is the inertia
    (Lloyd, "Least squares quantization in PCM", 1982).
    """

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        """Return the squared distance, which is the score."""
        return Objective(RowObjective(), elastic(0.0, 0.0))

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        centers = op.parameter(model, "cluster_centers_", role="weight")
        squares = pairwise_distances(op, x, centers, "sqeuclidean")
        # the centre is chosen, not differentiated
        chosen = self.chosen(op, model, x, squares)
        return Scores(
            "unsupervised",
            op.GatherElements(squares, chosen, axis=1),
            1,
            label=op.Squeeze(chosen, [1]),
            transformed=guarded_sqrt(op, squares, op.float_dtype),
        )

    def chosen(self, op: ModelWriter, model: Any, x: str, squares: str) -> str:
        """Append the number of each sample's cluster, of shape (n, 1)."""
        return op.ArgMin(squares, axis=1, keepdims=1)


class BisectingKMeansDefinition(KMeansDefinition):
    """BisectingKMeans: down a tree of clusters, each time to the nearer one of two.

    Centres of clusters that were split only decide the branch: they are not trained.
    """

    def chosen(self, op: ModelWriter, model: Any, x: str, squares: str) -> str:
        """Append the number of the leaf that each sample reaches."""
        splits = list(_splits(model._bisecting_tree))
        if not splits:
            return op.ArgMin(squares, axis=1, keepdims=1)
        n_clusters, shift = len(model.cluster_centers_), getattr(model, "_X_mean", 0.0)
        parts = [child for split in splits for child in (split.left, split.right)]
        inner = [child.center + shift for child in parts if child.left is not None]
        if inner:
            others = op.constant(np.array(inner, dtype=op.float_dtype))
            squares = op.Concat(squares, pairwise_distances(op, x, others, "sqeuclidean"), axis=1)
        numbers = iter(range(n_clusters, n_clusters + len(inner)))
        columns = [child.label if child.left is None else next(numbers) for child in parts]
        left, right = (op.Gather(squares, columns[side::2], axis=1) for side in (0, 1))
        turns = op.Sub(op.Mul(op.Cast(op.LessOrEqual(left, right), to=op.elem_type), 2.0), 1.0)
        ways = np.zeros((len(splits), n_clusters), dtype=op.float_dtype)
        for row, split in enumerate(splits):
            ways[row, [leaf.label for leaf in split.left.iter_leaves()]] = 1
            ways[row, [leaf.label for leaf in split.right.iter_leaves()]] = -1
        # the turns of a sample agree with all those on the path to its leaf, and to no other
        missed = op.Sub(op.MatMul(turns, ways), np.abs(ways).sum(axis=0))
        return op.ArgMax(missed, axis=1, keepdims=1)

    def finish(self, model: Any) -> None:
        shift = getattr(model, "_X_mean", 0.0)
        for leaf in model._bisecting_tree.iter_leaves():
            leaf.center = model.cluster_centers_[leaf.label] - shift


def _splits(node: Any) -> Iterator[Any]:
    """Yield the nodes of a tree of clusters that were split."""
    if node.left is not None:
        yield node
        yield from _splits(node.left)
        yield from _splits(node.right)
