"""scikit-learn's trees as attributes of the operators of decision trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import numpy_helper

from ...models.trees.routing import rounded_down

__all__ = [
    "NodeArrays",
    "label_attributes",
    "leaf_attributes",
    "leaves_of",
    "nodes_of",
    "routing_attributes",
]


class NodeArrays(NamedTuple):
    """The nodes of a tree, the root first; arrays of shape (n_nodes,).

    Parameters
    ----------
    features : ndarray of int
        Column that a split compares.
    modes : ndarray of str
        How: ``"BRANCH_LEQ"``, ``"BRANCH_EQ"``; ``"LEAF"`` for a leaf.
    thresholds : ndarray of float64
        With what.
    yes, no : ndarray of int
        Nodes that follow.
    tracks : ndarray of int
        Whether a missing value goes to ``yes``: 0 or 1.
    """

    features: np.ndarray
    modes: np.ndarray
    thresholds: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    tracks: np.ndarray

    @property
    def leaves(self) -> np.ndarray:
        """Numbers of the leaves."""
        return np.flatnonzero(self.modes == "LEAF")


def leaves_of(tree: Any) -> np.ndarray:
    """Return the numbers of the leaves of a ``tree_``."""
    return np.flatnonzero(tree.children_left < 0)


def nodes_of(tree: Any, columns: np.ndarray | None = None) -> NodeArrays:
    """Return the nodes of a ``tree_``, which was grown on some columns of X."""
    split = tree.children_left >= 0
    features = np.where(split, tree.feature, 0)
    to_left = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))
    return NodeArrays(
        features if columns is None else np.asarray(columns)[features],
        np.where(split, "BRANCH_LEQ", "LEAF"),
        np.where(split, tree.threshold, 0),
        np.where(split, tree.children_left, 0),
        np.where(split, tree.children_right, 0),
        np.where(split, to_left, 0),
    )


def routing_attributes(
    trees: Sequence[NodeArrays],
    in_float64: bool = False,
    rounded: Callable[[np.ndarray], np.ndarray] = rounded_down,
) -> dict[str, Any]:
    """Return the splits of some trees.

    Parameters
    ----------
    trees : sequence of NodeArrays
        Trees.
    in_float64 : bool, default=False
        Whether X is float64, so that thresholds stay as they are.
    rounded : callable, default=rounded_down
        Rounds the thresholds to float32 otherwise.

    Returns
    -------
    dict of str to list or onnx.TensorProto
        Attributes ``nodes_*``.
    """
    sizes = [len(tree.modes) for tree in trees]
    whole = NodeArrays(*(np.concatenate(arrays) for arrays in zip(*trees, strict=True)))
    attributes = {
        "nodes_treeids": np.repeat(np.arange(len(trees)), sizes).tolist(),
        "nodes_nodeids": np.concatenate([np.arange(size) for size in sizes]).tolist(),
        "nodes_featureids": whole.features.tolist(),
        "nodes_modes": whole.modes.tolist(),
        "nodes_truenodeids": whole.yes.tolist(),
        "nodes_falsenodeids": whole.no.tolist(),
        "nodes_missing_value_tracks_true": whole.tracks.astype(np.int64).tolist(),
    }
    if in_float64:
        thresholds = numpy_helper.from_array(whole.thresholds.astype(np.float64))
        return {**attributes, "nodes_values_as_tensor": thresholds}
    return {**attributes, "nodes_values": rounded(whole.thresholds).tolist()}


def leaf_attributes(
    trees: Sequence[NodeArrays],
    values: Sequence[np.ndarray],
    outputs: Sequence[np.ndarray],
    prefix: str = "target",
) -> dict[str, Any]:
    """Return what the leaves of some trees add.

    Parameters
    ----------
    trees : sequence of NodeArrays
        Trees.
    values : sequence of ndarray of shape (n_leaves, k)
        For each tree, what its leaves add.
    outputs : sequence of ndarray of shape (k,)
        For each tree, to which outputs.
    prefix : {"target", "class"}, default="target"
        How the attributes are named.

    Returns
    -------
    dict of str to list
        Attributes ``target_*`` or ``class_*``.
    """
    counts = [len(tree.leaves) for tree in trees]
    widths = [len(own) for own in outputs]
    repeats = np.repeat(widths, counts)
    ids = [np.tile(own, count) for own, count in zip(outputs, counts, strict=True)]
    flat = np.concatenate([np.asarray(own, dtype=np.float32).ravel() for own in values])
    return {
        f"{prefix}_treeids": np.repeat(np.repeat(np.arange(len(trees)), counts), repeats).tolist(),
        f"{prefix}_nodeids": np.repeat(np.concatenate([tree.leaves for tree in trees]), repeats).tolist(),
        f"{prefix}_ids": np.concatenate(ids).tolist(),
        f"{prefix}_weights": flat.tolist(),
    }


def label_attributes(classes: np.ndarray) -> dict[str, Any]:
    """Return the labels of a classifier: texts, or integers."""
    if classes.dtype.kind in "UO":
        return {"classlabels_strings": [str(label) for label in classes]}
    return {"classlabels_int64s": [int(label) for label in classes]}
