"""Nodes of trees as arrays, and the leaves of samples as a graph or as a fused operator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import TensorProto

from ...graphs import GraphBuilder
from ..fusion import ML, ML_OPSET, FusedForm, FusedGraph, add_array
from ..parameters import Access
from ..writer import ModelWriter
from .thresholds import raised, rounded_down

STEM = "leaf_values"  # name of a table of leaves


class TreeLeaves(Access):
    """Values of the leaves of a tree or a forest."""

    def nodes_of(self, model: Any) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """Return, for each tree, a view of node values and a mask of leaves."""
        return [(tree.value, tree.children_left < 0) for tree in trees_of(model)]

    def read(self, owner: Any) -> np.ndarray:
        return np.concatenate([values[leaves] for values, leaves in self.nodes_of(owner)])

    def write(self, owner: Any, value: np.ndarray) -> None:
        begin = 0
        for values, leaves in self.nodes_of(owner):
            values[leaves] = value[begin : (begin := begin + int(leaves.sum()))]


def trees_of(model: Any) -> list[Any]:
    """Return the tree of an estimator, or the trees of its ``estimators_``."""
    return [member.tree_ for member in np.ravel(getattr(model, "estimators_", [model]))]


@dataclass(frozen=True)
class Nodes:
    """The nodes of several trees, tree by tree; arrays of shape (n_nodes,)."""

    sizes: np.ndarray  # counts of nodes, of shape (n_trees,)
    depth: int  # splits on the longest path from a root to a leaf
    is_leaf: np.ndarray
    left: np.ndarray  # child of a split, numbered within its tree
    right: np.ndarray
    feature: np.ndarray  # column that a split compares
    threshold: np.ndarray  # float64; samples up to it go left
    missing_left: np.ndarray  # whether missing values go left

    @property
    def roots(self) -> np.ndarray:
        """Position of the root of each tree among the nodes of all trees."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def trees(self) -> np.ndarray:
        """Number of the tree of each node."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def children(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the left and the right child of each split among the nodes of all trees."""
        first = self.roots[self.trees]
        return self.left + first, self.right + first

    @classmethod
    def of_splits(cls, left: Any, right: Any, feature: Any, threshold: Any, missing_left: Any) -> Nodes:
        """Return the nodes of a tree: the splits first, the root before the others, then the leaves.

        Arguments have an item for each split, as the attributes; leaf k has the number ``n_splits + k``.
        :meth:`joined` concatenates trees.

        Examples
        --------
        >>> from ortlearn.models.trees import Nodes
        >>> tree = Nodes.of_splits([1, 2], [4, 3], [0, 1], [0.5, 2.0], [True, False])
        >>> tree.depth, tree.is_leaf.tolist()
        (2, [False, False, True, True, True])
        """
        n_splits, children = len(left), list(zip(left, right, strict=True))
        depth, level, is_leaf = 1, [0] if n_splits else [], np.arange(2 * n_splits + 1) >= n_splits
        while level := [child for node in level for child in children[node] if child < n_splits]:
            depth += 1
        given = (left, -1, np.int64), (right, -1, np.int64), (feature, 0, np.int64)
        arrays = []
        for values, of_leaf, dtype in (*given, (threshold, 0, np.float64), (missing_left, 0, bool)):
            arrays.append(np.full(len(is_leaf), of_leaf, dtype))
            arrays[-1][:n_splits] = values
        return cls(np.array([len(is_leaf)]), depth, is_leaf, *arrays)

    @classmethod
    def joined(cls, parts: Sequence[Nodes]) -> Nodes:
        """Concatenate the nodes of several trees."""
        values = {name: [getattr(part, name) for part in parts] for name in cls.__dataclass_fields__}
        depth = max(values.pop("depth"))
        return cls(depth=depth, **{name: np.concatenate(arrays) for name, arrays in values.items()})

    def part(self, trees: np.ndarray) -> Nodes:
        """Return the nodes of some trees."""
        own = np.concatenate([np.arange(self.sizes[tree]) + self.roots[tree] for tree in trees])
        names = self.__dataclass_fields__.keys() - {"sizes", "depth"}
        return replace(self, sizes=self.sizes[trees], **{name: getattr(self, name)[own] for name in names})

    @classmethod
    def of_trees(cls, trees: Sequence[Any], columns: Sequence[np.ndarray] | None = None) -> Nodes:
        """Return the nodes of ``tree_`` attributes; ``columns`` are the columns of X of each tree."""
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
        """Return the nodes of the predictors of histogram-based gradient boosting."""
        nodes = np.concatenate([predictor.nodes for predictor in predictors])
        sizes, depth = np.array([len(predictor.nodes) for predictor in predictors]), int(nodes["depth"].max())
        is_leaf, missing_left = nodes["is_leaf"] != 0, nodes["missing_go_to_left"] != 0
        left, right, feature = (nodes[name].astype(np.int64) for name in ("left", "right", "feature_idx"))
        return cls(sizes, depth, is_leaf, left, right, feature, nodes["num_threshold"], missing_left)


def _tables(nodes: Nodes, n_features: int, thresholds: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return column, threshold, following node and leaf number of each node, of shape (n_trees, n_nodes)."""
    # Nodes are renumbered, the root first, the right child of a split just before the left one: the next node
    # is following + (x <= threshold). Leaves follow themselves, as comparisons with NaN are false.
    shape = len(nodes.sizes), int(nodes.sizes.max())
    split, (left, right) = np.flatnonzero(~nodes.is_leaf), nodes.children
    tree = nodes.trees[split]
    pairs = 1 + 2 * (np.arange(len(split)) - np.searchsorted(split, nodes.roots)[tree])
    position = np.empty(len(nodes.is_leaf), dtype=np.int64)  # in the flattened tables
    position[nodes.roots] = np.arange(shape[0]) * shape[1]
    position[right[split]] = tree * shape[1] + pairs
    position[left[split]] = tree * shape[1] + pairs + 1
    columns, leaves = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int64)
    following = np.tile(np.arange(shape[1], dtype=np.int32), (shape[0], 1))
    limits = np.full(shape, np.nan, dtype=thresholds.dtype)
    columns.ravel()[position[split]] = nodes.feature[split] + n_features * nodes.missing_left[split]
    following.ravel()[position[split]] = pairs
    limits.ravel()[position[split]] = thresholds[split]
    leaves.ravel()[position[nodes.is_leaf]] = np.arange(len(position) - len(split))
    return columns, limits, following, leaves


def leaf_numbers(op: ModelWriter, nodes: Nodes, x: str, n_features: int, in_float32: bool = True) -> str:
    """Append the indices of the leaves that samples reach, among the leaves of all trees, int64 (n, n_trees).

    ``in_float32`` is whether the trees compare float32 samples with their thresholds. Samples are of type
    ``op.sample_dtype``; float32 samples are on the same side of thresholds as in float64.
    """
    double = op.sample_dtype == np.float64
    if in_float32 and double:
        x = op.Cast(x, to=TensorProto.FLOAT)
    in_double = double and not in_float32
    thresholds = nodes.threshold if in_double else rounded_down(nodes.threshold)
    if not in_float32 and not op.exact:
        thresholds = raised(thresholds, nodes.feature, nodes.is_leaf)
    samples = x
    *tables, leaves = _tables(nodes, n_features, thresholds)
    # With trees first, neighbouring look-ups are in the same tree, in nearby memory.
    x = op.Transpose(x, perm=[1, 0])
    if nodes.missing_left.any():  # these splits read copies of columns with -inf for missing values
        low = op.constant(-np.inf, dtype=thresholds.dtype)
        x = op.Concat(x, op.Where(op.IsNaN(x), low, x), axis=0)
    columns, limits, following = tables
    node = _next(op, op.Gather(x, columns[:, 0], axis=0), limits[:, :1], following[:, :1])
    for _ in range(nodes.depth - 1):
        column, limit, next_one = (op.GatherElements(table, node, axis=1) for table in tables)
        node = _next(op, op.GatherElements(x, column, axis=0), limit, next_one)
    numbers = op.Transpose(op.GatherElements(leaves, node, axis=1), perm=[1, 0])
    op.fused[numbers] = FusedTrees(samples, numbers, replace(nodes, threshold=thresholds))
    return numbers


def _next(op: ModelWriter, values: str, threshold: Any, following: Any) -> str:
    return op.Add(following, op.Cast(op.LessOrEqual(values, threshold), to=TensorProto.INT32))


def leaf_sums(
    op: ModelWriter,
    table: str,
    numbers: str,
    n_rounds: int = 0,
    n_scores: int = 1,
    first: str = "",
    is_mean: bool = False,
) -> str:
    """Append the sums of the values of the leaves that samples reach, of shape (n, n_scores).

    The table has the values of all leaves, (n_leaves,), or (n_leaves, ...) for sums (n, ...); ``numbers``
    are those of :func:`leaf_numbers`. A boosting round has a tree for each score. ``first`` are initial
    scores, (n_scores,) or (n, n_scores). ``is_mean`` declares trees whose mean is predicted.
    """
    values = op.Gather(table, numbers, axis=0)
    if is_mean:
        op.add_members(values, rank=1 + len(op.shape(table) or ()))
    if len(op.shape(table) or ()) > 1:
        sums = op.ReduceSum(values, [1], keepdims=0)
    elif n_scores == 1:
        sums = op.ReduceSum(values, [1], keepdims=1)
    else:
        sums = op.ReduceSum(op.Reshape(values, [-1, n_rounds, n_scores]), [1], keepdims=0)
    base = first if first in op.parameters else ""
    if base:
        sums = op.Add(sums, base)
    form = op.fused.get(numbers)
    if isinstance(form, FusedTrees) and not form.sums:
        op.fused[numbers] = replace(form, sums=sums, tables=(table,), n_scores=n_scores, base=base)
    return op.Add(sums, first) if first and not base else sums


MAX_LEAVES = 2**24  # the operator returns float32, which represents integers exactly up to this number


@dataclass(frozen=True)
class FusedTrees(FusedForm):
    """Trees as one operator: sums of float32 leaf values, or indices of leaves in a table."""

    samples: str  # tensor of shape (n, n_features), of the type of the thresholds
    numbers: str  # tensor of the indices of the leaves, int64 of shape (n, n_trees)
    nodes: Nodes  # with the thresholds that samples are compared with
    sums: str = ""  # tensor of the sums of the values of leaves; empty without any
    # Initializers that together have the values, (n_leaves,), (n_leaves, k) or (n_leaves, n_outputs, k).
    tables: tuple[str, ...] = ()
    n_scores: int = 1  # columns of the sums of a table of one value per leaf: tree i adds to i % n_scores
    base: str = ""  # initializer of the initial value of each sum

    def apply(self, graph: FusedGraph) -> None:
        if graph.computes(self.sums):
            self._replace_sums(graph)
        if graph.computes(self.numbers) and int(self.nodes.is_leaf.sum()) <= MAX_LEAVES:
            graph.replace([self.numbers], self._write_numbers)

    def _replace_sums(self, graph: FusedGraph) -> None:
        """Replace the sums of this form, unless values are of other types."""
        values, base = self.values(graph)
        if values.dtype == np.float32:  # the type of the output
            graph.replace([self.sums], lambda op: self._write_sums(op, values, base))

    def values(self, graph: FusedGraph) -> tuple[np.ndarray, Any]:
        """Return the values of all leaves, and the initial value of each sum."""
        arrays = graph.arrays((*self.tables, self.base))
        base = arrays[self.base].ravel() if self.base else ()
        return np.concatenate([arrays[name] for name in self.tables]), base

    def _write_sums(self, op: GraphBuilder, values: np.ndarray, base: Any) -> None:
        if values.ndim == 1:
            targets, weights = self._trees_of_leaves() % self.n_scores, values
            self.write(op, self.sums, self.n_scores, np.arange(len(values)), targets, weights, base)
            return
        several = values.ndim > 2
        output = op.unique("TreeEnsembleRegressor") if several else self.sums
        self.write_rows(op, output, values.reshape(len(values), -1), base)
        if several:
            op.node("Reshape", output, [-1, *values.shape[1:]], outputs=[self.sums])

    def write_rows(self, op: GraphBuilder, output: str, table: np.ndarray, base: Any = ()) -> None:
        """Append the sums of the rows of a table, one for each leaf, that samples reach; float32."""
        is_written = table != 0
        is_written[:, 0] |= ~is_written.any(axis=1)  # every leaf has a value
        leaves, targets = np.nonzero(is_written)
        self.write(op, output, table.shape[1], leaves, targets, table[leaves, targets], base)

    def _write_numbers(self, op: GraphBuilder) -> None:
        leaves = np.arange(int(self.nodes.is_leaf.sum()))
        output = op.unique("TreeEnsembleRegressor")
        self.write(op, output, len(self.nodes.sizes), leaves, self._trees_of_leaves(), leaves)
        op.node("Cast", output, to=TensorProto.INT64, outputs=[self.numbers])

    def _trees_of_leaves(self) -> np.ndarray:
        return self.nodes.trees[self.nodes.is_leaf]

    def write(
        self,
        op: GraphBuilder,
        output: str,
        n_targets: int,
        leaves: Any,
        targets: Any,
        weights: Any,
        base: Any = (),
    ) -> None:
        """Append the operator, which adds a weight to a target where a sample reaches a leaf."""
        nodes, is_leaf = self.nodes, self.nodes.is_leaf
        tree = nodes.trees
        number = np.arange(len(tree)) - nodes.roots[tree]
        of_leaf = np.flatnonzero(is_leaf)[leaves]
        options: Any = {"domain": ML, "domain_version": ML_OPSET, "outputs": [output]}
        options["n_targets"] = int(n_targets)
        options |= {"post_transform": "NONE", "aggregate_function": "SUM"}
        options["base_values"] = list(map(float, base)) or None
        op.node("TreeEnsembleRegressor", self.samples, **options)
        attributes: dict[str, Any] = {
            "nodes_treeids": tree,
            "nodes_nodeids": number,
            "nodes_featureids": np.where(is_leaf, 0, nodes.feature),
            "nodes_modes": np.where(is_leaf, b"LEAF", b"BRANCH_LEQ"),
            "nodes_values": np.where(is_leaf, 0, nodes.threshold).astype(nodes.threshold.dtype),
            "nodes_truenodeids": np.where(is_leaf, 0, nodes.left),
            "nodes_falsenodeids": np.where(is_leaf, 0, nodes.right),
            "target_treeids": tree[of_leaf],
            "target_nodeids": number[of_leaf],
            "target_ids": targets,
            "target_weights": weights.astype(nodes.threshold.dtype),
        }
        if nodes.missing_left.any():
            attributes["nodes_missing_value_tracks_true"] = (nodes.missing_left & ~is_leaf).astype(int)
        for name, values in attributes.items():
            add_array(op.nodes[-1], name, values)
