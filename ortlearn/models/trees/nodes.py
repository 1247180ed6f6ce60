"""The nodes of trees as arrays, and the values of their leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..parameters import Access

#: Name of a table of leaves.
STEM = "leaf_values"


class Leaves(Access):
    """Leaves of trees, those of a tree after those of the one before.

    For an estimator, ``nodes_of`` returns a view of the values of the nodes of each tree, and which of these
    are leaves.
    """

    def __init__(self, nodes_of: Callable[[Any], Iterable[tuple[np.ndarray, np.ndarray]]]):
        self.nodes_of = nodes_of

    def read(self, owner: Any) -> np.ndarray:
        return np.concatenate([values[leaves] for values, leaves in self.nodes_of(owner)])

    def write(self, owner: Any, value: np.ndarray) -> None:
        begin = 0
        for values, leaves in self.nodes_of(owner):
            values[leaves] = value[begin : (begin := begin + int(leaves.sum()))]


def leaves_of_trees(trees: Iterable[Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return values and leaves of trees, attributes ``tree_``, as :class:`Leaves` takes them."""
    return [(tree.value, tree.children_left < 0) for tree in trees]


@dataclass(frozen=True)
class Nodes:
    """The nodes of several trees, those of a tree after those of the one before; arrays of shape (n_nodes,).

    Attributes
    ----------
    sizes : ndarray of int, shape (n_trees,)
        Numbers of nodes.
    depth : int
        Splits on the longest way from a root to a leaf.
    is_leaf : ndarray of bool
        Whether a node is a leaf.
    left, right : ndarray of int
        Nodes that follow a split, numbered within their tree.
    feature : ndarray of int
        Column that a split compares.
    threshold : ndarray of float64
        Samples up to it go left.
    missing_left : ndarray of bool
        Whether missing values go left.
    """

    sizes: np.ndarray
    depth: int
    is_leaf: np.ndarray
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray

    @classmethod
    def of_splits(
        cls,
        left: Sequence[int],
        right: Sequence[int],
        feature: Sequence[int],
        threshold: Sequence[float],
        missing_left: Sequence[bool],
    ) -> Nodes:
        """Return the nodes of a tree: the splits first, the root before the others, then the leaves.

        Parameters
        ----------
        left, right : sequence of int
            Nodes that follow each split; leaf k has the number ``n_splits + k``.
        feature : sequence of int
            Column that each split compares.
        threshold : sequence of float
            Samples up to it go left.
        missing_left : sequence of bool
            Whether missing values go left.

        Returns
        -------
        Nodes
            Nodes of one tree; :meth:`joined` puts those of several together.

        Examples
        --------
        >>> from ortlearn.models.trees import Nodes
        >>> tree = Nodes.of_splits([1, 2], [4, 3], [0, 1], [0.5, 2.0], [True, False])
        >>> tree.depth, tree.is_leaf.tolist()
        (2, [False, False, True, True, True])
        """
        n_splits = len(left)
        leaves = n_splits + 1
        depth, level = 1, [0] if n_splits else []
        while level := [child for node in level for child in (left[node], right[node]) if child < n_splits]:
            depth += 1
        return cls(
            np.array([n_splits + leaves]),
            depth,
            np.arange(n_splits + leaves) >= n_splits,
            np.append(np.asarray(left, dtype=np.int64), [-1] * leaves),
            np.append(np.asarray(right, dtype=np.int64), [-1] * leaves),
            np.append(np.asarray(feature, dtype=np.int64), [0] * leaves),
            np.append(np.asarray(threshold, dtype=np.float64), [0.0] * leaves),
            np.append(np.asarray(missing_left, dtype=bool), [False] * leaves),
        )

    @classmethod
    def joined(cls, parts: Sequence[Nodes]) -> Nodes:
        """Return the nodes of several trees as one, in this order."""
        values = {name: [getattr(part, name) for part in parts] for name in cls.__dataclass_fields__}
        depth = max(values.pop("depth"))
        return cls(depth=depth, **{name: np.concatenate(arrays) for name, arrays in values.items()})

    @classmethod
    def of_trees(cls, trees: Sequence[Any], columns: Sequence[np.ndarray] | None = None) -> Nodes:
        """Return the nodes of trees, attributes ``tree_``, which may be grown on some columns of X each."""
        names = ("children_left", "children_right", "threshold", "missing_go_to_left")
        left, right, threshold, missing = (np.concatenate([getattr(t, n) for t in trees]) for n in names)
        features = [tree.feature for tree in trees]
        if columns is not None:
            features = [np.asarray(own)[found] for own, found in zip(columns, features, strict=True)]
        sizes, depth = np.array([tree.node_count for tree in trees]), max(tree.max_depth for tree in trees)
        return cls(sizes, depth, left < 0, left, right, np.concatenate(features), threshold, missing != 0)

    @classmethod
    def of_predictors(cls, predictors: Sequence[Any]) -> Nodes:
        """Return the nodes of the trees of gradient boosting on histograms."""
        nodes = np.concatenate([predictor.nodes for predictor in predictors])
        return cls(
            np.array([len(predictor.nodes) for predictor in predictors]),
            int(nodes["depth"].max()),
            nodes["is_leaf"] != 0,
            nodes["left"].astype(np.int64),
            nodes["right"].astype(np.int64),
            nodes["feature_idx"].astype(np.int64),
            nodes["num_threshold"],
            nodes["missing_go_to_left"] != 0,
        )
