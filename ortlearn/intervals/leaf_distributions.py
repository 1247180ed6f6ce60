"""Distributions of labels in the leaves of trees, the weights of quantile forests (Meinshausen 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.pipeline import Pipeline
from sklearn.tree._tree import Tree

__all__ = ["has_leaves", "thresholds_of", "with_distributions"]

#: Number of labels at which distributions are stored.
COUNT = 48


def has_leaves(estimator: Any) -> bool:
    """Return whether an estimator, or the last step of a pipeline, is a tree or a forest."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return hasattr(last, "apply") and "min_samples_leaf" in last.get_params()


def thresholds_of(y: np.ndarray) -> np.ndarray:
    """Return labels at which distributions are stored, denser towards both ends."""
    shares = np.sin(np.linspace(0, np.pi / 2, COUNT)) ** 2
    found = np.unique(np.quantile(y, shares))
    return found if len(found) > 1 else np.array([found[0], found[0] + 1.0])


def with_distributions(fitted: Any, X: Any, y: np.ndarray, thresholds: np.ndarray, weights: Any) -> Any:
    """Return a fitted tree or forest whose leaves have the distribution of their training labels."""
    is_pipeline = isinstance(fitted, Pipeline)
    model, rows = (fitted.steps[-1][1], fitted[:-1].transform(X)) if is_pipeline else (fitted, X)
    below = (y.reshape(-1, 1) <= thresholds).astype(np.float64)
    below[:, 0] = 0.0  # nothing is below the lowest label
    weights = np.ones(len(y)) if weights is None else weights
    for tree in getattr(model, "estimators_", [model]):
        leaves = tree.apply(rows)
        table = csr_matrix((weights, (leaves, np.arange(len(y)))), shape=(tree.tree_.node_count, len(y)))
        values = (table @ below) / np.maximum(np.asarray(table.sum(axis=1)), 1e-300)
        tree.tree_ = _with_values(tree.tree_, values)
        tree.n_outputs_ = len(thresholds)
    model.n_outputs_ = len(thresholds)
    return fitted


def _with_values(tree: Tree, values: np.ndarray) -> Tree:
    """Return a tree with the same nodes, and several values for each."""
    count = values.shape[1]
    changed = Tree(tree.n_features, np.ones(count, dtype=np.intp), count)
    changed.__setstate__({**tree.__getstate__(), "values": np.ascontiguousarray(values[:, :, None])})
    return changed
