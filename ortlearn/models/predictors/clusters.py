"""Clusterings: distances to centres."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...losses import BaseLoss, RowObjective
from ..base import ModelDefinition
from ..formulas.distances import guarded_sqrt, pairwise_distances
from ..scores import Scores
from ..writer import ModelWriter


class CentersDefinition(ModelDefinition):
    """MeanShift, and base of models with centres: the loss is the squared distance to the nearest centre."""

    centers = "cluster_centers_"  # name of the attribute

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        centers = op.parameter(model, self.centers, role="weight")
        squares = pairwise_distances(op, x, centers, "sqeuclidean")
        chosen = self.chosen(op, model, x, squares)  # not differentiated
        score, label = op.GatherElements(squares, chosen, axis=1), op.Squeeze(chosen, [1])
        transformed = guarded_sqrt(op, squares, op.float_dtype) if hasattr(model, "transform") else None
        label = self.label(op, model, label)
        return Scores("unsupervised", score, 1, label=label, transformed=transformed)

    def chosen(self, op: ModelWriter, model: Any, x: str, squares: str) -> str:
        """Append the index of the centre of each sample, of shape (n, 1)."""
        return op.ArgMin(squares, axis=1, keepdims=1)

    def label(self, op: ModelWriter, model: Any, number: str) -> str:
        """Append the label of a centre."""
        return number


class KMeansDefinition(CentersDefinition):
    """KMeans and MiniBatchKMeans: the nearest centre (Lloyd, "Least squares quantization in PCM", 1982)."""

    loss: type[BaseLoss] | None = RowObjective


class AffinityPropagationDefinition(CentersDefinition):
    """AffinityPropagation: the nearest exemplar; training moves exemplars freely."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        if not hasattr(model, "cluster_centers_"):
            raise op.fail(model, "it has no predict with precomputed affinities: fit it on features.")
        if not len(model.cluster_centers_):
            reason = "it has no centres, as its fit did not converge: increase max_iter or damping."
            raise op.fail(model, reason)
        return super().write(op, model, x)


class BirchDefinition(CentersDefinition):
    """Birch: the cluster of the nearest subcluster; training does not update the tree of partial_fit."""

    centers = "subcluster_centers_"

    def label(self, op: ModelWriter, model: Any, number: str) -> str:
        return op.Gather(np.asarray(model.subcluster_labels_, dtype=np.int64), number, axis=0)

    def finish(self, model: Any) -> None:
        model._subcluster_norms = np.square(model.subcluster_centers_).sum(axis=1)


class BisectingKMeansDefinition(KMeansDefinition):
    """BisectingKMeans: prediction by a tree of clusters, of which the centres of leaves are trained."""

    def has_own_score(self, model: Any) -> bool:
        return True  # distances from the center of the predicted cluster, which is not always the closest

    def chosen(self, op: ModelWriter, model: Any, x: str, squares: str) -> str:
        nodes = list(_inner_nodes(model._bisecting_tree))
        if not nodes:
            return op.ArgMin(squares, axis=1, keepdims=1)
        n_clusters, shift = len(model.cluster_centers_), getattr(model, "_X_mean", 0.0)
        parts = [child for node in nodes for child in (node.left, node.right)]
        inner = [child.center + shift for child in parts if child.left is not None]
        if inner:
            others = op.constant(np.array(inner, dtype=op.float_dtype))
            squares = op.Concat(squares, pairwise_distances(op, x, others, "sqeuclidean"), axis=1)
        numbers = iter(range(n_clusters, n_clusters + len(inner)))
        columns = [child.label if child.left is None else next(numbers) for child in parts]
        left, right = (op.Gather(squares, columns[side::2], axis=1) for side in (0, 1))
        turns = op.Sub(op.Mul(op.ones_where(op.LessOrEqual(left, right)), 2.0), 1.0)
        paths = np.zeros((len(nodes), n_clusters), dtype=op.float_dtype)
        for row, node in enumerate(nodes):
            paths[row, [leaf.label for leaf in node.left.iter_leaves()]] = 1
            paths[row, [leaf.label for leaf in node.right.iter_leaves()]] = -1
        # zero for the leaf whose path agrees with all turns of a sample, negative for others
        agreement = op.Sub(op.MatMul(turns, paths), np.abs(paths).sum(axis=0))
        return op.ArgMax(agreement, axis=1, keepdims=1)

    def finish(self, model: Any) -> None:
        shift = getattr(model, "_X_mean", 0.0)
        for leaf in model._bisecting_tree.iter_leaves():
            leaf.center = model.cluster_centers_[leaf.label] - shift


def _inner_nodes(node: Any) -> Iterator[Any]:
    """Yield the inner nodes of a tree of clusters, in preorder."""
    if node.left is not None:
        yield node
        yield from _inner_nodes(node.left)
        yield from _inner_nodes(node.right)
