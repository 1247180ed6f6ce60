"""Validate matrices without scikit-learn, whose validation takes longer than a prediction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..problem.input_validation import InputFeatures
    from ..trainable.conversion import TrainableModel

__all__ = ["validated_matrix"]

#: Kinds of numeric types: floats, integers, booleans.
NUMBERS = "fiub"


def validated_matrix(trainable: TrainableModel, X: Any, features: InputFeatures) -> np.ndarray | None:
    """Return X as the input of the graph, or None if :func:`read_samples` must validate it."""
    if not trainable.takes_numbers:
        return None
    if features.names is not None:
        X = _frame_as_array(X, features.names)
    elif type(X) is list:
        X = _list_as_array(X)
    if type(X) is not np.ndarray or X.dtype.kind not in NUMBERS or X.ndim != 2:
        return None
    if X.shape[1] != features.count or not len(X):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        samples = np.ascontiguousarray(X, trainable.input_dtype)
        # The sum of finite numbers may overflow; read_samples handles this case.
        return samples if math.isfinite(samples.sum()) else None


def _list_as_array(X: list) -> np.ndarray | None:
    """Return a list of lists as an array, None for other lists."""
    if not all(type(row) is list for row in X):
        return None
    try:
        return np.asarray(X)
    except ValueError:  # samples of different lengths
        return None


def _frame_as_array(X: Any, names: np.ndarray) -> np.ndarray | None:
    """Return a pandas frame with given names and NumPy types as an array, None for other frames."""
    if type(X).__module__.partition(".")[0] != "pandas" or not hasattr(X, "columns"):
        return None
    kinds = {dtype.kind if isinstance(dtype, np.dtype) else "O" for dtype in X.dtypes.array}
    same = kinds <= set(NUMBERS) and np.array_equal(X.columns.array, names)
    return X.to_numpy() if same else None
