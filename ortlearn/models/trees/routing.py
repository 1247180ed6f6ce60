"""The graph that finds the leaves of samples and sums their values."""

from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from ..writer import ModelWriter
from .fused import FusedTrees
from .nodes import Nodes


def rounded_down(thresholds: np.ndarray) -> np.ndarray:
    """Return the largest float32 up to each threshold: float32 samples fall on the same side."""
    with np.errstate(over="ignore"):  # beyond float32 is infinite
        rounded = thresholds.astype(np.float32)
        return np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def rounded_to_nearest(thresholds: np.ndarray) -> np.ndarray:
    """Return the nearest float32 to each threshold, the smaller of two, for samples rounded from float64."""
    # rounding is monotone; samples of float32 may be next to a threshold midway between two neighbours
    with np.errstate(over="ignore", invalid="ignore"):
        rounded, below = thresholds.astype(np.float32), rounded_down(thresholds)
        is_middle = rounded.astype(np.float64) - thresholds == thresholds - below.astype(np.float64)
    return np.where(is_middle, below, rounded)


def _tables(nodes: Nodes, n_features: int, thresholds: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return column, threshold, following node and leaf number of each node, of shape (n_trees, n_nodes)."""
    # Nodes are renumbered, the root first, the right child of a split just before the left one: the next node
    # is following + (x <= threshold). Leaves follow themselves, as comparisons with NaN are false.
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
    """Append the numbers of the leaves that samples reach, among those of all trees, int64 (n, n_trees).

    ``in_float32`` says whether the trees compare float32 samples with their thresholds.
    """
    double = op.float_dtype == np.float64
    if in_float32:
        x = op.Cast(x, to=TensorProto.FLOAT) if double else x
        thresholds = rounded_down(nodes.threshold)
    else:
        thresholds = nodes.threshold if double else rounded_to_nearest(nodes.threshold)
    samples = x
    *tables, leaves = _tables(nodes, n_features, thresholds)
    # With trees first, neighbouring look-ups are in the same tree, in nearby memory.
    x = op.Transpose(x, perm=[1, 0])
    if nodes.missing_left.any():  # these splits read columns where missing values are low
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
    op: ModelWriter, table: str, numbers: str, n_rounds: int = 0, n_scores: int = 1, first: str = ""
) -> str:
    """Append the sums of the values of the leaves that samples reach, of shape (n, n_scores).

    The table has the values of all leaves, (n_leaves,), or (n_leaves, ...) for sums (n, ...); numbers are
    those of :func:`leaf_numbers`. A boosting round has a tree for each score. ``first`` are initial scores,
    (n_scores,) or (n, n_scores).
    """
    values = op.Gather(table, numbers, axis=0)
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
        op.fused[numbers] = replace(form, sums=sums, table=table, n_scores=n_scores, base=base)
    return op.Add(sums, first) if first and not base else sums
