"""Distributions of labels in the leaves of trees, the weights of quantile forests (Meinshausen 2006)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from ..models.trees.nodes import FusedTrees
from .members import Member

__all__ = ["distributions", "thresholds_of", "trees_of_member"]

#: Number of labels at which distributions are stored.
COUNT = 48


def trees_of_member(member: Member) -> FusedTrees | None:
    """Return the trees of the only table of leaves that a model sums; None for bagging and other models."""
    fused = member.estimator._model().problem.trainable.fused
    forms = [form for form in fused if isinstance(form, FusedTrees)]
    # of bagging, whose trees have a table each, a model per level has the better intervals
    return forms[0] if len(forms) == 1 and len(forms[0].tables) == 1 else None


def thresholds_of(y: np.ndarray) -> np.ndarray:
    """Return labels at which distributions are stored, denser towards both ends."""
    shares = np.sin(np.linspace(0, np.pi / 2, COUNT)) ** 2
    found = np.unique(np.quantile(y, shares))
    return found if len(found) > 1 else np.array([found[0], found[0] + 1.0])


def distributions(
    member: Member, form: FusedTrees, X: Any, y: np.ndarray, thresholds: np.ndarray, weights: Any
) -> np.ndarray:
    """Return a row for each leaf, so that the sum over trees is a distribution function at the thresholds."""
    below = (y.reshape(-1, 1) <= thresholds).astype(np.float64)
    below[:, 0] = 0.0  # nothing is below the lowest label
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    leaves = replace(member, tensor=form.numbers).output(X, None)
    n_leaves, n_trees = int(form.nodes.is_leaf.sum()), leaves.shape[1]
    cells = leaves.ravel(), np.repeat(np.arange(len(y)), n_trees)
    table = csr_matrix((np.repeat(weights, n_trees), cells), shape=(n_leaves, len(y)))
    totals = np.asarray(table.sum(axis=1))
    every = weights @ below / weights.sum()  # of leaves without weight
    return np.where(totals > 0, table @ below / np.where(totals > 0, totals, 1.0), every) / n_trees
