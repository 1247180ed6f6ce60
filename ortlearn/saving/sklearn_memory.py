"""Check scikit-learn objects that access memory by indices, before they are used.

Predictions of trees and neighbour searches do not check the bounds of indices. Indices from a fit are valid;
indices from a file may be arbitrary.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.neighbors import BallTree, KDTree
from sklearn.tree._tree import Tree

from ..exceptions import SavedFileError

__all__ = ["check_memory"]

#: Number of 32-bit words of a set of 256 categories in histogram boosting.
WORDS = 8


def check_memory(estimator: Any, content: bytes, classes: Collection[str]) -> None:
    """Raise an error if an object of a skops file would read memory out of bounds.

    Each node of a tree must have one parent before it, and a valid feature. The trees of neighbour searches
    are rebuilt from their samples. All trees must be attributes in which scikit-learn stores them.
    """
    expected = _number_in(content, classes)
    if not expected:
        return
    parts = list(_parts(estimator))
    checked = {id(part) for part in parts if isinstance(part, KDTree | BallTree)}
    for part in parts:
        if isinstance(part, KDTree | BallTree):
            _rebuild(part)
        elif isinstance(getattr(part, "tree_", None), Tree):
            _check_tree(part.tree_, part.n_features_in_)
            checked.add(id(part.tree_))
        elif isinstance(part, BaseHistGradientBoosting) and hasattr(part, "_predictors"):
            checked |= {id(predictor) for predictor in _checked_predictors(part)}
    for part in parts:
        if isinstance(part, BaseGradientBoosting) and hasattr(part, "estimators_"):
            _check_boosting(part)
    if len(checked) != expected:
        raise SavedFileError("It has trees in attributes in which scikit-learn does not store them.")


def _number_in(content: bytes, classes: Collection[str]) -> int:
    """Return the number of objects to check in a skops file."""
    found = set()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        stack: list[Any] = [json.loads(archive.read("schema.json"))]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if f"{node.get('__module__')}.{node.get('__class__')}" in classes:
                found.add(node.get("__id__"))
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return len(found)


def _parts(root: Any) -> Iterator[Any]:
    """Yield an object and the objects in its attributes, containers and arrays."""
    seen, stack = set(), [root]
    kept = []  # references, so that ids are not reused
    while stack:
        part = stack.pop()
        if id(part) in seen or isinstance(part, type):
            continue
        seen.add(id(part))
        kept.append(part)
        yield part
        if isinstance(part, dict):
            stack.extend([*part.keys(), *part.values()])
        elif isinstance(part, list | tuple | set | frozenset):
            stack.extend(part)
        elif isinstance(part, np.ndarray):
            stack.extend(part.ravel().tolist() if part.dtype == object else ())
        stack.extend(getattr(part, "__dict__", {}).values())


def _check(condition: Any) -> None:
    """Raise an error for an invalid tree unless a condition is true."""
    if not condition:
        raise SavedFileError("A tree has invalid indices.")


def _check_nodes(left: np.ndarray, right: np.ndarray, inner: np.ndarray, feature: np.ndarray, n: int) -> None:
    """Check that every node but the first has one parent, before it, and that features are below n."""
    parents = np.flatnonzero(inner)
    children = np.concatenate([left[parents], right[parents]]).astype(np.int64)
    _check(len(left) > 0 and np.array_equal(np.sort(children), np.arange(1, len(left))))
    _check((children > np.concatenate([parents, parents])).all())
    _check(((feature[parents] >= 0) & (feature[parents] < n)).all())


def _check_tree(tree: Tree, n_features: int) -> None:
    _check(tree.node_count > 0 and tree.n_features == n_features)
    left, right = tree.children_left, tree.children_right
    inner = left != -1
    _check(np.array_equal(inner, right != -1))
    _check_nodes(left, right, inner, tree.feature, n_features)
    depth, level = 0, np.zeros(1, np.int64)
    while len(level := level[inner[level]]):
        depth, level = depth + 1, np.concatenate([left[level], right[level]])
    _check(tree.max_depth == depth)


def _check_boosting(model: BaseGradientBoosting) -> None:
    """Check that each stage has one tree with one output for each column of the scores."""
    stages, n_features = model.estimators_, model.n_features_in_
    for tree in (member.tree_ for member in stages.ravel()):
        _check(tree.n_features == n_features and tree.n_outputs == tree.max_n_classes == 1)
    scores = model._raw_predict_init(np.zeros((1, n_features), dtype=np.float32))
    _check(stages.ndim == 2 and scores.shape == (1, stages.shape[1]))


def _checked_predictors(model: BaseHistGradientBoosting) -> Iterator[TreePredictor]:
    """Check the nodes of the trees of histogram boosting, and yield the trees."""
    n_features, kinds = model.n_features_in_, model._bin_mapper.is_categorical_
    _check(kinds.shape == (n_features,))
    for predictor in (predictor for stage in model._predictors for predictor in stage):
        nodes, sets = predictor.nodes, predictor.raw_left_cat_bitsets
        inner = nodes["is_leaf"] == 0
        _check_nodes(nodes["left"], nodes["right"], inner, nodes["feature_idx"], n_features)
        splits = nodes[inner & (nodes["is_categorical"] != 0)]
        _check(kinds[splits["feature_idx"]].all() and sets.ndim == 2 and sets.shape[1] == WORDS)
        _check((splits["bitset_idx"] < len(sets)).all())
        yield predictor


def _rebuild(tree: KDTree | BallTree) -> None:
    """Rebuild a search tree from its samples, in place."""
    state = tree.__getstate__()
    rows, size, metric, weights = np.asarray(state[0]), state[4], state[-2], state[-1]
    tree.__init__(rows, size, metric, sample_weight=None if weights is None else np.asarray(weights))
