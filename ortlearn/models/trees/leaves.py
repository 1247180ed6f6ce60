"""The values of leaves: read from trees, and written into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..parameters import Access
from ..writer import ModelWriter

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
        return np.concatenate([tree.value[tree.children_left < 0] for tree in self.trees(owner)])

    def write(self, owner: Any, value: np.ndarray) -> None:
        begin = 0
        for tree in self.trees(owner):
            leaves = tree.children_left < 0
            tree.value[leaves] = value[begin : (begin := begin + int(leaves.sum()))]


class PredictorLeaves(Access):
    """Leaves of the trees of gradient boosting on histograms: (n_leaves,)."""

    def read(self, owner: Any) -> np.ndarray:
        return np.concatenate(
            [tree.nodes["value"][tree.nodes["is_leaf"] != 0] for tree in _predictors(owner)]
        )

    def write(self, owner: Any, value: np.ndarray) -> None:
        begin = 0
        for tree in _predictors(owner):
            leaves = tree.nodes["is_leaf"] != 0
            tree.nodes["value"][leaves] = value[begin : (begin := begin + int(leaves.sum()))]


def _predictors(model: Any) -> list[Any]:
    return [tree for round_ in model._predictors for tree in round_]


def leaf_sums(op: ModelWriter, table: str, numbers: str, n_rounds: int, n_scores: int = 1) -> str:
    """Append the sums of the values of the leaves that samples reach.

    Parameters
    ----------
    op : ModelWriter
        Receives the nodes.
    table : str
        Values of all leaves, of shape (n_leaves,).
    numbers : str
        Positions in the table, of shape (n, n_trees): see :func:`~ortlearn.models.trees.leaf_numbers`.
    n_rounds : int
        Number of rounds of boosting.
    n_scores : int, default=1
        Number of scores; a round has a tree for each, in their order.

    Returns
    -------
    str
        Matrix of shape (n, n_scores).
    """
    values = op.Gather(table, numbers, axis=0)
    if n_scores == 1:
        return op.ReduceSum(values, [1], keepdims=1)
    return op.ReduceSum(op.Reshape(values, [-1, n_rounds, n_scores]), [1], keepdims=0)
