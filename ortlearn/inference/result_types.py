"""Floating-point types of results, which follow X as in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..preprocessing.columns import is_frame

__all__ = ["as_floats_of", "probabilities_as_floats_of"]

#: Largest difference from 1 of a sum of float32 probabilities.
ROUNDING = 1e-5


def as_floats_of(X: Any, values: np.ndarray) -> np.ndarray:
    """Return results as float64, or unchanged if X is float32."""
    if values.dtype != np.float32 or _is_single(X):
        return values
    return values.astype(np.float64)


def probabilities_as_floats_of(X: Any, values: np.ndarray, sum_to_one: bool, axis: int = 1) -> np.ndarray:
    """Return probabilities as :func:`as_floats_of` does, normalised to sum to 1 in float64.

    scikit-learn's metrics reject float64 sums that are 1 only with the precision of float32. Sums that differ
    by more, such as zeros for outliers, are not changed.
    """
    wide = as_floats_of(X, values)
    if wide is values or not sum_to_one:
        return wide
    total = wide.sum(axis=axis, keepdims=True)
    return np.divide(wide, total, out=wide, where=np.abs(total - 1) < ROUNDING)


def _is_single(X: Any) -> bool:
    """Return whether all of X is float32, by the names of types for frames and tensors of other libraries."""
    if type(X) is np.ndarray:
        return X.dtype == np.float32
    kinds = list(getattr(X, "dtypes", ())) if is_frame(X) else [getattr(X, "dtype", None)]
    return bool(kinds) and all(str(kind).rpartition(".")[2].lower() == "float32" for kind in kinds)
