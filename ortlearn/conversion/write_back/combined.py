"""Expressions that converters store of several attributes: how to write the attributes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["WRITERS"]


def _eigenvectors(estimator: Any, values: np.ndarray) -> None:
    vectors = values.reshape(estimator.eigenvectors_.shape) * np.sqrt(estimator.eigenvalues_)
    estimator.eigenvectors_ = np.asarray(vectors, dtype=estimator.eigenvectors_.dtype)


def _unit_rows(estimator: Any, values: np.ndarray) -> None:
    """Write the rows of a kernel of cosines: scikit-learn divides them by their length again."""
    rows = np.empty_like(estimator.X_fit_)
    rows[...] = values.reshape(rows.shape)
    estimator.X_fit_ = rows


def _posterior(estimator: Any, values: np.ndarray) -> None:
    estimator.pi_ = estimator.y_train_ - values.reshape(estimator.pi_.shape)


#: By class of the owner and expression, as ``weights.attribute_tables.COMBINED`` has them.
WRITERS: dict[tuple[str, str], Callable[[Any, np.ndarray], None]] = {
    ("KernelPCA", "eigenvectors_ / sqrt(eigenvalues_)"): _eigenvectors,
    ("KernelPCA", "normalize(X_fit_)"): _unit_rows,
    ("_BinaryGaussianProcessClassifierLaplace", "y_train_ - pi_"): _posterior,
}
