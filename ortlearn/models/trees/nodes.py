"""The nodes of trees as arrays, and the values of their leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..parameters import Access

STEM = "leaf_values"  # name of a table of leaves


class Leaves(Access):
    """Leaves of trees; ``nodes_of`` returns, for each tree, a view of node values and a mask of leaves."""

    def __init__(self, nodes_of: Callable[[Any], Iterable[tuple[np.ndarray, np.ndarray]]]):
        self.nodes_of = nodes_of

    def read(self, owner: Any) -> np.ndarray:
        return np.concatenate([values[leaves] for values, leaves in self.nodes_of(owner)])

    def write(self, owner: Any, value: np.ndarray) -> None:
        begin = 0
        for values, leaves in self.nodes_of(owner):
            values[leaves] = value[begin : (begin := begin + int(leaves.sum()))]


def trees_of(model: Any) -> list[Any]:
    """Return the tree of an estimator, or the trees of its ``estimators_``."""
    return [member.tree_ for member in np.ravel(getattr(model, "estimators_", [model]))]


TREE_LEAVES = Leaves(lambda model: [(tree.value, tree.children_left < 0) for tree in trees_of(model)])


@dataclass(frozen=True)
class Nodes:
    """The nodes of several trees, tree by tree; arrays of shape (n_nodes,)."""

    sizes: np.ndarray  # numbers of nodes, of shape (n_trees,)
    depth: int  # splits on the longest path from a root to a leaf
    is_leaf: np.ndarray
    left: np.ndarray  # child of a split, numbered within its tree
    right: np.ndarray
    feature: np.ndarray  # column that a split compares
    threshold: np.ndarray  # float64; samples up to it go left
    missing_left: np.ndarray  # whether missing values go left

    @classmethod
    def of_splits(cls, left: Any, right: Any, feature: Any, threshold: Any, missing_left: Any) -> Nodes:
        """Return the nodes of a tree: the splits first, the root before the others, then the leaves.

        Arguments have an item for each split, as the attributes; leaf k has the number ``n_splits + k``.
        :meth:`joined` puts the nodes of several trees together.

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
        left, right = (np.append(np.asarray(own, np.int64), [-1] * leaves) for own in (left, right))
        feature = np.append(np.asarray(feature, np.int64), [0] * leaves)
        threshold = np.append(np.asarray(threshold, np.float64), [0.0] * leaves)
        missing_left = np.append(np.asarray(missing_left, bool), [False] * leaves)
        is_leaf = np.arange(n_splits + leaves) >= n_splits
        return cls(np.array([len(is_leaf)]), depth, is_leaf, left, right, feature, threshold, missing_left)

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
        if columns is not None:  # leaves have negative features
            pairs = zip(columns, features, strict=True)
            features = [np.asarray(own)[np.maximum(feature, 0)] for own, feature in pairs]
        sizes, depth = np.array([tree.node_count for tree in trees]), max(tree.max_depth for tree in trees)
        return cls(sizes, depth, left < 0, left, right, np.concatenate(features), threshold, missing != 0)

    @classmethod
    def of_predictors(cls, predictors: Sequence[Any]) -> Nodes:
        """Return the nodes of the trees of gradient boosting on histograms."""
        nodes = np.concatenate([predictor.nodes for predictor in predictors])
        sizes, depth = np.array([len(predictor.nodes) for predictor in predictors]), int(nodes["depth"].max())
        is_leaf, missing_left = nodes["is_leaf"] != 0, nodes["missing_go_to_left"] != 0
        left, right, feature = (nodes[name].astype(np.int64) for name in ("left", "right", "feature_idx"))
        return cls(sizes, depth, is_leaf, left, right, feature, nodes["num_threshold"], missing_left)
