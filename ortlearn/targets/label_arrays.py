"""Labels of several dimensions: shapes, masks, and weights of positions."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..models import Positions
from ..preprocessing.columns import shape_of

__all__ = [
    "check_shape_of_labels",
    "check_weights_of_positions",
    "dense_labels",
    "indices_of",
    "not_one_per_sample",
    "numbers_of_positions",
    "per_position",
    "with_masked_labels",
]


def check_shape_of_labels(y: Any, positions: Positions) -> None:
    """Raise an error if the shape of labels does not match the scores of a model."""
    shape = shape_of(y, "y")
    if not positions.fits(shape):
        sizes = ", ".join("?" if size is None else str(size) for size in positions.shape)
        raise ValueError(
            f"y has the shape {shape}, and the output of the model has the shape (n, {sizes}): y must have "
            "one label for each element of the output, without the axis of classes."
        )


def check_weights_of_positions(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Check weights of several dimensions, and return them as float64."""
    weights = numbers_of_positions(sample_weight, n_samples)
    if not weights.max(initial=0) > 0:
        raise ValueError("sample_weight is zero for every position: at least one must be above 0.")
    return weights


def numbers_of_positions(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return weights as :func:`check_weights_of_positions` does, but accept zero for all."""
    weights = np.asarray(sample_weight)
    if weights.dtype.kind not in "fiub":
        raise ValueError(f"sample_weight must contain numbers, and has type {weights.dtype}.")
    weights = weights.astype(np.float64)
    if len(weights) != n_samples:
        raise ValueError(f"sample_weight has weights of {len(weights)} samples, X has {n_samples}.")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("sample_weight must be finite and not negative.")
    return weights


def not_one_per_sample(shape: tuple[int, ...]) -> str:
    """Return the message for weights of several dimensions that a model does not support."""
    return (
        f"sample_weight must be 1D, and has the shape {shape}. A weight for each label is supported for ONNX "
        "files with several labels per sample, if the first call has such weights."
    )


def dense_labels(y: Any) -> np.ndarray:
    """Return labels, which may be sparse, as an array."""
    return y.toarray() if issparse(y) else np.asarray(y)


def with_masked_labels(y: Any, sample_weight: Any) -> Any:
    """Replace labels of weight zero by a valid label."""
    if y is None or sample_weight is None or issparse(y) or np.ndim(sample_weight) < 2:
        return y
    used, labels = np.asarray(sample_weight) != 0, np.asarray(y)
    if used.shape != labels.shape or used.all() or not used.any():
        return y
    labels = labels.copy()
    labels[~used] = labels[used].flat[0]
    return labels


def per_position(weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return weights of shape (n, positions) for labels of a shape."""
    if weights.ndim == 1:
        weights = weights.reshape(-1, *(1,) * (len(shape) - 1))
    elif weights.shape != shape:
        raise ValueError(
            f"sample_weight has the shape {weights.shape}: it must have one weight per sample, or the shape "
            f"of y, {shape}."
        )
    return np.broadcast_to(weights, shape).reshape(shape[0], -1)


def indices_of(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the index of each label among known ones, which may be unsorted; -1 for other labels."""
    if labels.ndim == 1 and labels.dtype == object:  # a dictionary compares no texts
        numbers = {label: index for index, label in enumerate(known.tolist())}
        return np.fromiter(map(numbers.get, labels.tolist(), repeat(-1)), np.int64, len(labels))
    order = np.argsort(known)
    indices = order[np.minimum(np.searchsorted(known, labels, sorter=order), len(known) - 1)]
    return np.where(known[indices] == labels, indices, -1)
