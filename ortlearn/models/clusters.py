"""Clusters: distances of samples to centres."""

from __future__ import annotations

from typing import Any

from .base import ModelDefinition
from .distances import guarded_sqrt, pairwise_distances
from .scores import Scores
from .writer import ModelWriter

__all__ = ["KMeansDefinition"]


class KMeansDefinition(ModelDefinition):
    """KMeans and MiniBatchKMeans: the nearest centre.

    The loss of a sample is its squared distance to that centre; the sum over samples is the inertia
    (Lloyd, "Least squares quantization in PCM", 1982).
    """

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append distances, clusters and the squared distance to the nearest centre."""
        squares = pairwise_distances(
            op, x, op.parameter(model, "cluster_centers_", role="weight"), "sqeuclidean"
        )
        # the nearest centre is chosen, not differentiated
        nearest = op.ArgMin(squares, axis=1, keepdims=1)
        return Scores(
            "unsupervised",
            op.GatherElements(squares, nearest, axis=1),
            1,
            label=op.Squeeze(nearest, [1]),
            transformed=guarded_sqrt(op, squares, op.float_dtype),
        )
