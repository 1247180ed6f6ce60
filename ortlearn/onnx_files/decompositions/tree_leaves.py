"""Leaf numbers of a sample, and sums of the values of its leaves."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .common import Fused
from .tree_nodes import Trees

__all__ = ["MAX_LEAVES", "STEM", "aggregated_leaves"]

#: Stem of the table's name.
STEM = "leaf_values"
#: The routing operator gives float32, which holds every integer up to this one.
MAX_LEAVES = 2**24
#: Reduction over the axis of the trees by aggregate function.
AGGREGATES = {"SUM": "ReduceSum", "AVERAGE": "ReduceSum", "MIN": "ReduceMin", "MAX": "ReduceMax"}


def aggregated_leaves(fused: Fused, trees: Trees, aggregate: str = "SUM") -> str | None:
    """Append the aggregated values of the leaves that a sample reaches, of shape (n, n_outputs).

    The fused operator still routes the samples, with the number of a leaf in the place of its value: one
    number for each sample and tree. The values are one table, read by Gather: they can be trained while the
    splits stay. None where this aggregate cannot be written.

    References
    ----------
    Ren, S., Cao, X., Wei, Y. and Sun, J., "Global refinement of random forest", CVPR 2015: a forest is
    linear in the values of its leaves, section 3.
    """
    n_outputs = trees.values.shape[1]
    if np.bincount(trees.leaf_trees).max() > MAX_LEAVES or aggregate not in AGGREGATES:
        return None
    if n_outputs == 1:
        total = _one_output(fused, trees, AGGREGATES[aggregate])
    elif aggregate in ("MIN", "MAX"):
        return None
    else:
        outputs = trees.output_of_trees()
        total = _all_outputs(fused, trees) if outputs is None else _by_output(fused, trees, outputs)
    return fused.op.Div(total, float(trees.n_trees)) if aggregate == "AVERAGE" else total


def _one_output(fused: Fused, trees: Trees, reduction: str) -> str:
    values = fused.op.Gather(fused.weight(STEM, trees.values[:, 0]), _leaf_numbers(fused, trees), axis=0)
    return fused.op.node(reduction, values, [1], keepdims=1)


def _all_outputs(fused: Fused, trees: Trees) -> str:
    """Sum rows of a table with one column for each output."""
    values = fused.op.Gather(fused.weight(STEM, trees.values), _leaf_numbers(fused, trees), axis=0)
    return fused.op.ReduceSum(values, [1], keepdims=0)


def _by_output(fused: Fused, trees: Trees, outputs: np.ndarray) -> str:
    """Sum trees of one output each: put in rounds with a tree for every output, as boosting grows them."""
    n_outputs = trees.values.shape[1]
    rank = np.zeros(trees.n_trees, dtype=np.int64)
    for output in range(n_outputs):
        own = outputs == output
        rank[own] = np.arange(own.sum())
    rounds = int(rank.max()) + 1
    places = rank * n_outputs + outputs
    table = fused.weight(STEM, trees.values[np.arange(len(trees.values)), outputs[trees.leaf_trees]])
    values = fused.op.Gather(table, _leaf_numbers(fused, trees, places, rounds * n_outputs), axis=0)
    if rounds * n_outputs > trees.n_trees:
        there = np.zeros(rounds * n_outputs, dtype=trees.values.dtype)
        there[places] = 1
        values = fused.op.Mul(values, fused.op.constant(there))
    return fused.op.ReduceSum(fused.op.Reshape(values, [-1, rounds, n_outputs]), [1], keepdims=0)


def _leaf_numbers(fused: Fused, trees: Trees, places: np.ndarray | None = None, n_places: int = 0) -> str:
    """Write the position in the table of the leaf that a sample reaches in each tree: int64, (n, n_places).

    Places without a tree give the first leaf.
    """
    op = fused.op
    places = np.arange(trees.n_trees) if places is None else places
    n_places = n_places or trees.n_trees
    first = trees.first_leaves
    within = np.arange(len(trees.leaf_trees)) - first[trees.leaf_trees]
    route = op.node(
        "TreeEnsembleRegressor",
        _routed_input(fused),
        domain="ai.onnx.ml",
        aggregate_function="SUM",
        post_transform="NONE",
        n_targets=n_places,
        target_ids=places[trees.leaf_trees].tolist(),
        target_nodeids=trees.leaf_nodes.tolist(),
        target_treeids=trees.tree_ids[trees.leaf_trees].tolist(),
        target_weights=within.astype(float).tolist(),
    )
    for attribute in trees.routing:
        op.add_attribute(attribute)
    # onnx infers no shape of the operator's first version.
    number = op.Reshape(op.Cast(route, to=TensorProto.INT64), [-1, n_places])
    starts = np.zeros(n_places, dtype=np.int64)
    starts[places] = first
    return op.Add(number, op.constant(starts)) if starts.any() else number


def _routed_input(fused: Fused) -> str:
    """Return the input as onnxruntime's operator takes it: float64 is compared as it is."""
    known = fused.op.type(fused.node.input[0])
    return fused.node.input[0] if known and known.elem_type == TensorProto.DOUBLE else fused.float_input()
