"""The decision trees of a fused operator as arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from onnx import AttributeProto, numpy_helper

from .common import Fused

__all__ = ["Trees", "base_values", "numbers", "read_trees"]

#: What a TreeEnsembleRegressor needs to route a sample.
ROUTING = (
    "nodes_falsenodeids",
    "nodes_featureids",
    "nodes_missing_value_tracks_true",
    "nodes_modes",
    "nodes_nodeids",
    "nodes_treeids",
    "nodes_truenodeids",
    "nodes_values",
    "nodes_values_as_tensor",
)


@dataclass(frozen=True)
class Trees:
    """Decision trees: how they route a sample, and what their leaves add to which output.

    Attributes
    ----------
    routing : list of onnx.AttributeProto
        Attributes ``nodes_*`` of a TreeEnsembleRegressor.
    tree_ids : ndarray of int64, shape (n_trees,)
        Numbers of the trees, in the operator's order.
    leaf_trees : ndarray of int64, shape (n_leaves,)
        Position of each leaf's tree; the leaves of a tree are neighbours.
    leaf_nodes : ndarray of int64, shape (n_leaves,)
        Number of each leaf within its tree.
    values : ndarray of float32, shape (n_leaves, n_outputs)
        What each leaf adds to each output.
    used : ndarray of bool, shape (n_leaves, n_outputs)
        Where the operator names a value: others are zero.
    """

    routing: list[AttributeProto] = field(repr=False)
    tree_ids: np.ndarray
    leaf_trees: np.ndarray
    leaf_nodes: np.ndarray
    values: np.ndarray
    used: np.ndarray

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_ids)

    @property
    def first_leaves(self) -> np.ndarray:
        """Position of the first leaf of each tree: shape (n_trees,)."""
        return np.searchsorted(self.leaf_trees, np.arange(self.n_trees))

    def of_output(self, output: int) -> Trees:
        """Return the same trees with one of their outputs."""
        column = slice(output, output + 1)
        return replace(self, values=self.values[:, column], used=self.used[:, column])

    def output_of_trees(self) -> np.ndarray | None:
        """Return the one output that each tree adds to, None where a tree adds to several or to none."""
        uses = np.zeros((self.n_trees, self.used.shape[1]), dtype=bool)
        np.logical_or.at(uses, self.leaf_trees, self.used)
        return uses.argmax(axis=1) if (uses.sum(axis=1) == 1).all() else None


def numbers(fused: Fused, name: str) -> np.ndarray | None:
    """Return an attribute of numbers, given as a list or as a tensor; None where there is none.

    They are float32, as what the operator computes.
    """
    tensor = fused.attribute(f"{name}_as_tensor")
    values = fused.attribute(name, []) if tensor is None else numpy_helper.to_array(tensor).ravel()
    return np.asarray(values, dtype=np.float32) if len(values) else None


def base_values(fused: Fused, n_outputs: int) -> np.ndarray | None:
    """Return what is added to every score; None for nothing, as for zeros of another number than outputs."""
    base = numbers(fused, "base_values")
    return None if base is None or (base.size != n_outputs and not base.any()) else base


def read_trees(fused: Fused, prefix: str, n_outputs: int) -> Trees | None:
    """Return the trees of a TreeEnsembleRegressor or a TreeEnsembleClassifier.

    ``prefix`` is how the attributes of the leaves are named, ``"target"`` or ``"class"``. None where
    attributes are missing or do not fit together.
    """
    weights = numbers(fused, f"{prefix}_weights")
    outputs = _integers(fused, f"{prefix}_ids")
    nodes, treeids = _integers(fused, "nodes_nodeids"), _integers(fused, "nodes_treeids")
    if weights is None or nodes.size == 0 or outputs.size != weights.size:
        return None
    if outputs.min() < 0 or outputs.max() >= n_outputs:
        return None
    tree_ids = treeids[np.sort(np.unique(treeids, return_index=True)[1])]
    node_trees = _positions(treeids, tree_ids)
    # Leaves by tree, in the operator's order within a tree.
    leaves = np.flatnonzero(np.asarray(fused.attribute("nodes_modes")) == b"LEAF")
    leaves = leaves[np.argsort(node_trees[leaves], kind="stable")]
    trees = _positions(_integers(fused, f"{prefix}_treeids"), tree_ids)
    width = int(nodes.max()) + 1
    owners = _positions(
        trees * width + _integers(fused, f"{prefix}_nodeids"), node_trees[leaves] * width + nodes[leaves]
    )
    # onnxruntime leaves out what is written at nodes that are no leaves.
    known = owners >= 0
    values = np.zeros((len(leaves), n_outputs), dtype=np.float32)
    np.add.at(values, (owners[known], outputs[known]), weights[known])
    used = np.zeros(values.shape, dtype=bool)
    used[owners[known], outputs[known]] = True
    routing = [a for a in fused.node.attribute if a.name in ROUTING]
    return Trees(routing, tree_ids, node_trees[leaves], nodes[leaves], values, used)


def _integers(fused: Fused, name: str) -> np.ndarray:
    return np.asarray(fused.attribute(name, []), dtype=np.int64)


def _positions(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the position of each value among known ones, -1 where it is none of them."""
    order = np.argsort(known, kind="stable")
    found = order[np.minimum(np.searchsorted(known, values, sorter=order), len(known) - 1)]
    return np.where(known[found] == values, found, -1)
