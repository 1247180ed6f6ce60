"""Fewer trees of an ensemble, fewer leaves of trees, and new values of the leaves that stay."""

from __future__ import annotations

import copy
from bisect import bisect_left
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.linear_model import RidgeCV
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import ccp_pruning_path

from ..models.capabilities import capability_of
from ..models.trees.monotonic import MonotonicLeaves, projected_table
from .files import label_columns
from .teachers import member_answers

__all__ = ["fewer_leaves", "fewer_trees", "n_leaves", "n_trees"]

#: Strengths of the ridge penalty that are compared, and most samples that leaves are fitted on.
ALPHAS, MOST = np.geomspace(1e-3, 1e2, 16), 2000


def n_trees(model: Any) -> str:
    """Return the number of trees of an ensemble."""
    return str(len(model.estimators_))


def n_leaves(model: Any) -> str:
    """Return the number of leaves of a tree, or of all trees of an ensemble."""
    return str(_count(_trees(model)))


def fewer_trees(model: Any, X: Any, y: Any, share: float, options: Any, unseen: Any = None) -> Any:
    """Keep the trees whose mean is best, chosen one after the other, with new values of their leaves."""
    model, samples = copy.deepcopy(model), np.asarray(X)
    unseen = _keep(model, samples, y, unseen, max(1, round(len(model.estimators_) * (1 - share))))
    _fit_leaves(model, samples, y, unseen, options["random_state"])
    return model


def fewer_leaves(model: Any, X: Any, y: Any, share: float, options: Any, unseen: Any = None) -> Any:
    """Remove the subtrees whose splits decrease the impurity least per leaf, of all trees together.

    The strength of the minimal cost-complexity pruning (Breiman et al., 1984, section 3.3) is the lowest that
    leaves as few leaves as wanted. Of an ensemble the square root of the share of leaves is that of the trees
    that are kept, and the leaves get new values.
    """
    model, samples = copy.deepcopy(model), np.asarray(X)
    wanted = max(1, round(_count(_trees(model)) * (1 - share)))
    if is_forest := share > 0 and not isinstance(model, BaseDecisionTree):
        count = int(np.ceil(len(model.estimators_) * np.sqrt(1 - share)))
        unseen = _keep(model, samples, y, unseen, count)
    trees, whole = _trees(model), [tree.tree_ for tree in _trees(model)]

    def left(strength: float) -> int:
        """Return the number of leaves after the pruning of all trees."""
        for tree, nodes in zip(trees, whole, strict=True):
            tree.tree_, tree.ccp_alpha = nodes, strength
            tree._prune_tree()
        return _count(trees)

    strengths = np.unique(np.concatenate([ccp_pruning_path(nodes)["ccp_alphas"] for nodes in whole]))
    strength = float(strengths[bisect_left(strengths[:-1], -wanted, key=lambda one: -left(one))])
    left(strength)
    if is_forest:
        _fit_leaves(model, samples, y, unseen, options["random_state"])
    return model.set_params(ccp_alpha=strength)


def _trees(last: Any) -> list[Any]:
    return [last] if isinstance(last, BaseDecisionTree) else list(last.estimators_)


def _count(trees: list[Any]) -> int:
    return sum(tree.get_n_leaves() for tree in trees)


def _keep(last: Any, samples: np.ndarray, y: Any, unseen: Any, count: int) -> np.ndarray | None:
    """Keep the trees whose mean has the lowest squared error, and return what they have not seen.

    The error of a mean is the mean of the covariances of errors of its members (Zhou, Z.-H. et al.,
    "Ensembling neural networks: many could be better than all", 2002), of samples that neither has seen.
    """
    errors = np.stack(list(member_answers(last, samples))) - label_columns(y, getattr(last, "classes_", None))
    known = np.ones(errors.shape[:2]) if unseen is None else unseen.T.astype(np.float64)
    matrix = (errors * known[:, :, None]).reshape(len(errors), -1)
    covariances = (matrix @ matrix.T) / np.maximum(known @ known.T, 1)
    change, order = np.diag(covariances).copy(), list[int]()
    for _ in range(count):
        change[order] = np.inf
        order.append(int(np.argmin(change)))
        change += 2 * covariances[order[-1]]
    order.sort()
    for name in ("estimators_", "estimators_features_"):
        if hasattr(last, name):
            setattr(last, name, [getattr(last, name)[i] for i in order])
    last.set_params(n_estimators=count)
    return None if unseen is None else unseen[:, order]


def _fit_leaves(last: Any, samples: np.ndarray, y: Any, unseen: Any, seed: int) -> None:
    """Change the values of all leaves together by ridge regression of errors for unseen samples.

    The global refinement of Ren, S. et al. ("Global refinement of random forest", CVPR 2015), towards the
    values of the trees, with the strength of the lowest leave-one-out error. The predictions that it corrects
    are those of the trees that have not seen a sample.
    """
    if unseen is None or not hasattr(last, "apply"):  # bagging of any models
        return
    trees = [tree.tree_ for tree in last.estimators_]
    ends = np.cumsum([tree.node_count for tree in trees])
    known = np.flatnonzero(unseen.any(axis=1))
    known = np.sort(np.random.RandomState(seed).permutation(known)[:MOST])
    shares = unseen[known] / unseen[known].sum(axis=1, keepdims=True)
    columns = last.apply(samples[known]) + np.r_[0, ends[:-1]]
    rows = np.repeat(np.arange(len(known)), len(trees))
    design = sparse.csr_matrix((shares.ravel(), (rows, columns.ravel())), (len(known), ends[-1]))
    values = np.vstack([tree.value.reshape(tree.node_count, -1) for tree in trees])
    errors = label_columns(y, getattr(last, "classes_", None))[known] - design @ values
    scale = float(np.square(shares).sum(axis=1).mean())
    fitted = RidgeCV(ALPHAS * scale, fit_intercept=False).fit(design, errors)
    found = values + fitted.coef_.reshape(values.shape[1], -1).T
    if is_classifier(last):
        found = np.clip(found, 0, None)
        total = found.sum(axis=1, keepdims=True)
        found = np.where(total > 0, found / np.where(total > 0, total, 1), values)
    rule = capability_of(last, MonotonicLeaves)
    signs = None if rule is None else rule.signs(last)
    if rule is not None and signs is not None:
        nodes = rule.nodes(last)
        leaves = projected_table(nodes, signs, found[nodes.is_leaf], of_classes=is_classifier(last))
        found[nodes.is_leaf] = leaves
    for tree, own in zip(trees, np.split(found, ends[:-1]), strict=True):
        tree.value[...] = own.reshape(tree.value.shape)
