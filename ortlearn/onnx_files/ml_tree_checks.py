"""Checks of the attributes of decision trees, whose nodes must form trees."""

from __future__ import annotations

import numpy as np

from .ml_attributes import Attributes, Invalid

__all__ = ["tree_classifier", "tree_ensemble", "tree_regressor"]


def _nodes(a: Attributes) -> None:
    """Check the nodes of decision trees: lists of one length that form trees."""
    ids, trees = a.array("nodes_nodeids"), a.array("nodes_treeids")
    n_nodes = ids.size
    if not n_nodes:
        raise Invalid("it has no nodes")
    for name in ("treeids", "featureids", "modes", "truenodeids", "falsenodeids"):
        a.expect(f"nodes_{name}", a.array(f"nodes_{name}").size, n_nodes)
    a.expect("nodes_values", a.floats("nodes_values").size, n_nodes)
    for name in ("nodes_hitrates", "nodes_missing_value_tracks_true"):
        a.expect(name, a.floats(name).size, 0, n_nodes)
    _features(a, a.array("nodes_featureids")[a.array("nodes_modes") != b"LEAF"])
    places = {key: i for i, key in enumerate(zip(trees.tolist(), ids.tolist(), strict=True))}
    if len(places) < n_nodes:
        raise Invalid("a tree has two nodes of one number")
    inner = np.flatnonzero(a.array("nodes_modes") != b"LEAF")
    sides = [a.array(f"nodes_{side}nodeids")[inner].tolist() for side in ("true", "false")]
    owners = trees[inner].tolist()
    children = [[places.get(key, -1) for key in zip(owners, side, strict=True)] for side in sides]
    _forest(n_nodes, np.repeat(inner[:, None], 2, axis=1), np.array(children, dtype=np.int64).T)


def _features(a: Attributes, features: np.ndarray) -> None:
    if features.size and (features.min() < 0 or (a.columns is not None and features.max() >= a.columns)):
        raise Invalid(f"nodes_featureids names columns that the input of {a.columns} columns does not have")


def _forest(n_nodes: int, parents: np.ndarray, children: np.ndarray) -> None:
    """Raise an error where nodes and their children are no trees: one would be routed in circles."""
    children, parents = children.ravel(), parents.ravel()
    if children.size and (children.min() < 0 or children.max() >= n_nodes):
        raise Invalid("a node has a child that the tree does not have")
    waiting = np.bincount(children, minlength=n_nodes)
    order = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[order], np.arange(n_nodes + 1))
    children = children[order].tolist()
    ready = np.flatnonzero(waiting == 0).tolist()
    seen = 0
    while ready:
        node = ready.pop()
        seen += 1
        for child in children[starts[node] : starts[node + 1]]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if seen < n_nodes:
        raise Invalid("the nodes of a tree lead back to themselves")


def _leaves(a: Attributes, prefix: str, n_outputs: int) -> None:
    weights = a.floats(f"{prefix}_weights").size
    if not weights:
        raise Invalid(f"{prefix}_weights is empty")
    for name in ("ids", "nodeids", "treeids"):
        a.expect(f"{prefix}_{name}", a.array(f"{prefix}_{name}").size, weights)
    outputs = a.array(f"{prefix}_ids")
    if outputs.min() < 0 or outputs.max() >= n_outputs:
        raise Invalid(f"{prefix}_ids names outputs beyond the {n_outputs} that there are")
    known = set(zip(a.array("nodes_treeids").tolist(), a.array("nodes_nodeids").tolist(), strict=True))
    used = (a.array(f"{prefix}_{name}").tolist() for name in ("treeids", "nodeids"))
    if not known.issuperset(zip(*used, strict=True)):
        raise Invalid(f"{prefix}_nodeids names nodes that the trees do not have")


def tree_regressor(a: Attributes) -> None:
    """Raise an error for attributes of a TreeEnsembleRegressor that are no trees."""
    _nodes(a)
    n_targets = a.get("n_targets", 1)
    _leaves(a, "target", n_targets)
    a.expect("base_values", a.floats("base_values").size, 0, n_targets)


def tree_classifier(a: Attributes) -> None:
    """Raise an error for attributes of a TreeEnsembleClassifier that are no trees."""
    n_classes = a.classes("classlabels_int64s")
    _nodes(a)
    _leaves(a, "class", n_classes)
    a.expect("base_values", a.floats("base_values").size, 0, n_classes, 1 if n_classes == 2 else 0)


def tree_ensemble(a: Attributes) -> None:
    """Raise an error for attributes of a TreeEnsemble that are no trees."""
    features, leaves = a.array("nodes_featureids"), a.array("leaf_weights").size
    n_nodes = features.size
    a.expect("leaf_targetids", a.array("leaf_targetids").size, leaves)
    targets, n_targets = a.array("leaf_targetids"), a.get("n_targets", 1)
    if not n_nodes or not leaves or targets.min() < 0 or targets.max() >= n_targets:
        raise Invalid(f"it has no nodes or leaves, or leaf_targetids beyond the {n_targets} targets")
    _features(a, features)
    sides = []
    for side in ("true", "false"):
        ids, are_leaves = a.array(f"nodes_{side}nodeids"), a.array(f"nodes_{side}leafs")
        a.expect(f"nodes_{side}nodeids", ids.size, n_nodes)
        a.expect(f"nodes_{side}leafs", are_leaves.size, n_nodes)
        limits = np.where(are_leaves != 0, leaves, n_nodes)
        if np.any(ids < 0) or np.any(ids >= limits):
            raise Invalid(f"nodes_{side}nodeids names nodes or leaves that there are not")
        sides.append(np.where(are_leaves != 0, n_nodes + ids, ids))
    roots = a.array("tree_roots")
    if not roots.size or roots.min() < 0 or roots.max() >= n_nodes:
        raise Invalid("tree_roots names nodes that there are not")
    for name in ("nodes_splits", "nodes_modes"):
        a.expect(name, a.array(name).size, n_nodes)
    for name in ("nodes_hitrates", "nodes_missing_value_tracks_true"):
        a.expect(name, a.array(name).size, 0, n_nodes)
    parents = np.repeat(np.arange(n_nodes)[:, None], 2, axis=1)
    _forest(n_nodes + leaves, parents, np.array(sides, dtype=np.int64).T)
