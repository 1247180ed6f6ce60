"""Leaf numbers of a sample, and sums of the values of its leaves."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ...models.distances import reduced
from .common import Fused
from .trees import Trees

__all__ = ["AGGREGATES", "MAX_LEAVES", "STEM", "aggregated_leaves"]

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
    op, n_trees, n_outputs = fused.op, len(trees.tree_ids), trees.values.shape[1]
    several, values = n_outputs > 1, trees.values
    if np.bincount(trees.leaf_trees).max() > MAX_LEAVES or (several and aggregate in ("MIN", "MAX")):
        return None
    outputs = trees.output_of_trees() if several else np.zeros(n_trees, dtype=np.int64)
    places = np.arange(n_trees)
    if outputs is not None:  # in rounds with a tree for every output, as boosting grows them
        for output in range(n_outputs):
            own = outputs == output
            places[own] = np.arange(own.sum()) * n_outputs + output
        values = values[np.arange(len(values)), outputs[trees.leaf_trees]]
    n_places = n_trees if outputs is None else (int(places.max()) // n_outputs + 1) * n_outputs
    reached = op.Gather(fused.weight(STEM, values), _leaf_numbers(fused, trees, places, n_places), axis=0)
    if n_places > n_trees:
        there = np.zeros(n_places, dtype=values.dtype)
        there[places] = 1
        reached = op.Mul(reached, op.constant(there))
    if outputs is not None and several:
        reached = op.Reshape(reached, [-1, n_places // n_outputs, n_outputs])
    if aggregate in ("MIN", "MAX"):
        return reduced(op, AGGREGATES[aggregate], reached, 1)
    total = op.ReduceSum(reached, [1], keepdims=0 if several else 1)
    return op.Div(total, float(n_trees)) if aggregate == "AVERAGE" else total


def _leaf_numbers(fused: Fused, trees: Trees, places: np.ndarray, n_places: int) -> str:
    """Return the position in the table of the leaf that a sample reaches in each tree: int64, (n, n_places).

    Places without a tree give the first leaf.
    """
    op, first, x = fused.op, trees.first_leaves, fused.node.input[0]
    within = np.arange(len(trees.leaf_trees)) - first[trees.leaf_trees]
    known = op.type(x)
    is_double = known is not None and known.elem_type == TensorProto.DOUBLE
    route = op.node(
        "TreeEnsembleRegressor",
        x if is_double else fused.float_input(),  # float64 is compared as it is
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
