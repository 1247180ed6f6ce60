"""The values of leaves: read from trees, and written into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..parameters import Access

__all__ = ["STEM", "Leaves", "PredictorLeaves"]

#: Name of a table of leaves.
STEM = "leaf_values"


class Leaves(Access):
    """Leaves of trees, those of a tree after those of the one before: (n_leaves, n_outputs, n_classes).

    Parameters
    ----------
    trees : callable
        Returns the trees of an estimator, attributes ``tree_`` of its members.
    """

    def __init__(self, trees: Callable[[Any], Sequence[Any]]):
        self.trees = trees

    def read(self, owner: Any) -> np.ndarray:
        """Return the values."""
        return np.concatenate([tree.value[tree.children_left < 0] for tree in self.trees(owner)])

    def write(self, owner: Any, value: np.ndarray) -> None:
        """Set the values."""
        begin = 0
        for tree in self.trees(owner):
            leaves = tree.children_left < 0
            tree.value[leaves] = value[begin : (begin := begin + int(leaves.sum()))]


class PredictorLeaves(Access):
    """Leaves of the trees of gradient boosting on histograms: (n_leaves,)."""

    def read(self, owner: Any) -> np.ndarray:
        """Return the values."""
        return np.concatenate(
            [tree.nodes["value"][tree.nodes["is_leaf"] != 0] for tree in _predictors(owner)]
        )

    def write(self, owner: Any, value: np.ndarray) -> None:
        """Set the values."""
        begin = 0
        for tree in _predictors(owner):
            leaves = tree.nodes["is_leaf"] != 0
            tree.nodes["value"][leaves] = value[begin : (begin := begin + int(leaves.sum()))]


def _predictors(model: Any) -> list[Any]:
    return [tree for round_ in model._predictors for tree in round_]
