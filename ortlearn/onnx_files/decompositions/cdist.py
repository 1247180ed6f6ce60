"""com.microsoft.CDist -> differences of all pairs of rows, or a product where they are many."""

from __future__ import annotations

from ...models.distances import pairwise_distances
from .common import Fused

__all__ = ["decompose"]


def decompose(fused: Fused) -> bool:
    """Write the distances between the rows of two matrices."""
    metric = fused.text("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        return False
    a, b = fused.node.input
    result = pairwise_distances(fused.op, a, b, metric)
    fused.write("Identity", result, outputs=[fused.node.output[0]])
    return True
