"""The nodes of trees as arrays, the graph that leads samples to their leaves, and the values of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from ..parameters import Access
from ..writer import ModelWriter

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


def trees_of(model: Any) -> list[Any]:
    """Return the tree of an estimator, or those of its members in ``estimators_``."""
    return [member.tree_ for member in np.ravel(getattr(model, "estimators_", [model]))]


TREE_LEAVES = Leaves(lambda model: [(tree.value, tree.children_left < 0) for tree in trees_of(model)])


@dataclass(frozen=True)
class Nodes:
    """The nodes of several trees, those of a tree after those of the one before; arrays of shape (n_nodes,).

    ``left`` and ``right`` are the nodes that follow a split, numbered within their tree.
    """

    sizes: np.ndarray  # numbers of nodes, of shape (n_trees,)
    depth: int  # splits on the longest way from a root to a leaf
    is_leaf: np.ndarray
    left: np.ndarray
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
        if columns is not None:
            # leaves have negative ones
            pairs = zip(columns, features, strict=True)
            features = [np.asarray(own)[np.maximum(found, 0)] for own, found in pairs]
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


def rounded_down(thresholds: np.ndarray) -> np.ndarray:
    """Return the largest float32 up to each threshold t: float32 samples are on the same side of it."""
    with np.errstate(over="ignore"):  # beyond float32 is infinite
        rounded = thresholds.astype(np.float32)
    with np.errstate(over="ignore"):  # below the lowest number
        return np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def rounded_like_rows(thresholds: np.ndarray) -> np.ndarray:
    """Return the float32 nearest to each threshold t, the smaller of two: for samples that were float64.

    Rounding is monotone, so that x <= t stays so; x > t does unless both are the same in float32, where
    no threshold would do. Only a threshold in the middle of two neighbours would not do for samples that
    are float32: there the smaller one does.
    """
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
    below = rounded_down(thresholds)
    with np.errstate(invalid="ignore"):
        is_middle = rounded.astype(np.float64) - thresholds == thresholds - below.astype(np.float64)
    return np.where(is_middle, below, rounded)


def _tables(nodes: Nodes, n_features: int, thresholds: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return what the graph looks up for each node of each tree, arrays of shape (n_trees, n_nodes).

    These are columns, thresholds, the node that follows, and the number of the leaf. Nodes are numbered anew,
    the root first. The right child of a split comes right before the left one, so that the next node is
    ``following + (x <= threshold)``. Leaves follow themselves: no number is up to NaN.
    """
    shape = len(nodes.sizes), int(nodes.sizes.max())
    first = np.cumsum(nodes.sizes) - nodes.sizes
    split = np.flatnonzero(~nodes.is_leaf)
    tree = np.repeat(np.arange(shape[0]), nodes.sizes)[split]
    pairs = 1 + 2 * (np.arange(len(split)) - np.searchsorted(split, first)[tree])
    place = np.empty(len(nodes.is_leaf), dtype=np.int64)  # in the tables, one after the other
    place[first] = np.arange(shape[0]) * shape[1]
    place[nodes.right[split] + first[tree]] = tree * shape[1] + pairs
    place[nodes.left[split] + first[tree]] = tree * shape[1] + pairs + 1
    columns, leaves = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int64)
    following = np.tile(np.arange(shape[1], dtype=np.int32), (shape[0], 1))
    limits = np.full(shape, np.nan, dtype=thresholds.dtype)
    columns.ravel()[place[split]] = nodes.feature[split] + n_features * nodes.missing_left[split]
    following.ravel()[place[split]] = pairs
    limits.ravel()[place[split]] = thresholds[split]
    leaves.ravel()[place[nodes.is_leaf]] = np.arange(len(place) - len(split))
    return columns, limits, following, leaves


def leaf_numbers(op: ModelWriter, nodes: Nodes, x: str, n_features: int, in_float32: bool = True) -> str:
    """Append the numbers of the leaves that samples reach, positions among the leaves of all trees.

    They are int64, of shape (n, n_trees), from samples of ``n_features`` columns. ``in_float32`` says whether
    the trees were grown to compare float32 samples with the thresholds; float64 ones otherwise.
    """
    double = op.float_dtype == np.float64
    if double and in_float32:
        x = op.Cast(x, to=TensorProto.FLOAT)
    if in_float32:
        thresholds = rounded_down(nodes.threshold)
    else:
        thresholds = nodes.threshold if double else rounded_like_rows(nodes.threshold)
    *tables, leaves = _tables(nodes, n_features, thresholds)
    # With trees first, neighbouring look-ups are in the same tree: less memory is touched at a time.
    x = op.Transpose(x, perm=[1, 0])
    if nodes.missing_left.any():  # these splits read columns where missing values are low
        low = op.constant(-np.inf, dtype=thresholds.dtype)
        x = op.Concat(x, op.Where(op.IsNaN(x), low, x), axis=0)
    columns, limits, following = tables
    node = _next(op, op.Gather(x, columns[:, 0], axis=0), limits[:, :1], following[:, :1])
    for _ in range(nodes.depth - 1):
        column, limit, next_one = (op.GatherElements(table, node, axis=1) for table in tables)
        node = _next(op, op.GatherElements(x, column, axis=0), limit, next_one)
    return op.Transpose(op.GatherElements(leaves, node, axis=1), perm=[1, 0])


def _next(op: ModelWriter, values: str, threshold: Any, following: Any) -> str:
    return op.Add(following, op.Cast(op.LessOrEqual(values, threshold), to=TensorProto.INT32))


def leaf_sums(op: ModelWriter, table: str, numbers: str, n_rounds: int, n_scores: int = 1) -> str:
    """Append the sums of the values of the leaves that samples reach, of shape (n, n_scores).

    The table has the values of all leaves, of shape (n_leaves,); numbers are those of :func:`leaf_numbers`. A
    round of boosting has a tree for each score, in their order.
    """
    values = op.Gather(table, numbers, axis=0)
    if n_scores == 1:
        return op.ReduceSum(values, [1], keepdims=1)
    return op.ReduceSum(op.Reshape(values, [-1, n_rounds, n_scores]), [1], keepdims=0)
