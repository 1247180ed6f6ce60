"""Expressions that converters store of several attributes: how to write the attributes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..weights.attribute_tables import LEAF_DEPTHS

__all__ = ["WRITERS"]


def _eigenvectors(estimator: Any, values: np.ndarray) -> None:
    vectors = values.reshape(estimator.eigenvectors_.shape) * np.sqrt(estimator.eigenvalues_)
    estimator.eigenvectors_ = np.asarray(vectors, dtype=estimator.eigenvectors_.dtype)


def _unit_rows(estimator: Any, values: np.ndarray) -> None:
    """Write the rows of a kernel of cosines: scikit-learn divides them by their length again."""
    rows = np.empty_like(estimator.X_fit_)
    rows[...] = values.reshape(rows.shape)
    estimator.X_fit_ = rows


def _leaf_depths(forest: Any, values: np.ndarray) -> None:
    """Write the depths of the leaves of an isolation forest, less what stands for the rows they hold."""
    paths, begin = [], 0
    lengths = forest._average_path_length_per_tree
    for tree, path, length in zip(forest.estimators_, forest._decision_path_lengths, lengths, strict=True):
        leaves = tree.tree_.children_left < 0
        path = path.astype(np.float64)
        path[leaves] = values.ravel()[begin : begin + leaves.sum()] + 1.0 - length[leaves]
        begin += leaves.sum()
        paths.append(path)
    forest._decision_path_lengths = tuple(paths)


def _posterior(estimator: Any, values: np.ndarray) -> None:
    estimator.pi_ = estimator.y_train_ - values.reshape(estimator.pi_.shape)


def _first_scores(estimator: Any, values: np.ndarray) -> None:
    """Write the shares of which boosting starts from the logits."""
    shares = estimator._loss.link.inverse(
        values.ravel() if values.size == 1 else values.reshape(1, -1)
    ).ravel()
    if len(shares) == 1:
        shares = np.append(1 - shares, shares)
    estimator.init_.class_prior_ = shares


#: By class of the owner and expression, as ``weights.attribute_tables.COMBINED`` has them.
WRITERS: dict[tuple[str, str], Callable[[Any, np.ndarray], None]] = {
    ("GradientBoostingClassifier", "_raw_predict_init(X)"): _first_scores,
    ("IsolationForest", LEAF_DEPTHS): _leaf_depths,
    ("KernelPCA", "eigenvectors_ / sqrt(eigenvalues_)"): _eigenvectors,
    ("KernelPCA", "normalize(X_fit_)"): _unit_rows,
    ("_BinaryGaussianProcessClassifierLaplace", "y_train_ - pi_"): _posterior,
}
