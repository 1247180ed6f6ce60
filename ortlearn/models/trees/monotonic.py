"""Projection of the values of leaves to those that keep monotonic constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .nodes import Nodes

__all__ = ["MonotonicLeaves", "projected_leaves", "projected_table"]


@dataclass(frozen=True)
class MonotonicLeaves:
    """Trees with monotonic constraints: nodes, and the sign of each feature or None."""

    nodes: Callable[[Any], Nodes]
    signs: Callable[[Any], Any]


def projected_table(nodes: Nodes, signs: np.ndarray, values: np.ndarray, of_classes: bool) -> np.ndarray:
    """Return values of leaves, of shape (n_leaves, k), or shares of two classes that keep the signs."""
    if of_classes:
        second = projected_leaves(nodes, signs, values[:, 1])
        return np.stack([1 - second, second], axis=1)
    return np.stack([projected_leaves(nodes, signs, column) for column in values.T], axis=1)


def projected_leaves(nodes: Nodes, signs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return values of leaves, of shape (n_leaves,), that increase (1) or decrease (-1) in features.

    As in scikit-learn's growth, the middle between the children of a constrained split bounds all leaves
    below it.
    """
    left, right = nodes.children
    levels = [nodes.roots]
    while len(splits := levels[-1][~nodes.is_leaf[levels[-1]]]):
        levels.append(np.concatenate([left[splits], right[splits]]))
    sums, counts = np.zeros(len(left)), nodes.is_leaf.astype(np.float64)
    sums[nodes.is_leaf] = values
    for level in reversed(levels):
        splits = level[~nodes.is_leaf[level]]
        sums[splits] = sums[left[splits]] + sums[right[splits]]
        counts[splits] = counts[left[splits]] + counts[right[splits]]
    means, low, high = sums / counts, np.full(len(left), -np.inf), np.full(len(left), np.inf)
    for level in levels:
        splits = level[~nodes.is_leaf[level]]
        for child in (left[splits], right[splits]):
            low[child], high[child] = low[splits], high[splits]
        sign = signs[nodes.feature[splits]]
        pair = [np.clip(means[child[splits]], low[splits], high[splits]) for child in (left, right)]
        middle, kept = (pair[0] + pair[1]) / 2, sign != 0
        lower = np.where(sign > 0, left[splits], right[splits])[kept]
        upper = np.where(sign > 0, right[splits], left[splits])[kept]
        high[lower], low[upper] = middle[kept], middle[kept]
    return np.clip(means, low, high)[nodes.is_leaf]
