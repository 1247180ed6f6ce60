"""Labels that are arrays: their shapes, masks, and weights of positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..models import Positions
from ..preprocessing.columns import shape_of

__all__ = [
    "check_shape_of_labels",
    "check_weights_of_positions",
    "numbers_of_positions",
    "per_position",
    "with_masked_labels",
]


def check_shape_of_labels(y: Any, positions: Positions) -> None:
    """Raise an error if labels have another shape than the scores of a model."""
    shape = shape_of(y, "y")
    if not positions.fits(shape):
        sizes = ", ".join("?" if size is None else str(size) for size in positions.shape)
        raise ValueError(
            f"y has the shape {shape}, and the model has an output of shape (n, {sizes}) to compare it with: "
            "y must have one label for each of its elements, besides the axis of classes."
        )


def check_weights_of_positions(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return weights of more than one dimension as float64."""
    weights = numbers_of_positions(sample_weight, n_samples)
    if not weights.max(initial=0) > 0:
        raise ValueError("sample_weight is zero for every position: at least one must be above 0.")
    return weights


def numbers_of_positions(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return weights as :func:`check_weights_of_positions` does; all may be zero."""
    weights = np.asarray(sample_weight)
    if weights.dtype.kind not in "fiub":
        raise ValueError(f"sample_weight must hold numbers, it has type {weights.dtype}.")
    weights = weights.astype(np.float64)
    if len(weights) != n_samples:
        raise ValueError(f"sample_weight has weights of {len(weights)} samples, X has {n_samples}.")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("sample_weight must be finite and not negative.")
    return weights


def with_masked_labels(y: Any, sample_weight: Any) -> Any:
    """Return labels with one that counts in place of those whose weight is zero."""
    if y is None or sample_weight is None or issparse(y) or np.ndim(sample_weight) < 2:
        return y
    counts, labels = np.asarray(sample_weight) != 0, np.asarray(y)
    if counts.shape != labels.shape or counts.all() or not counts.any():
        return y
    labels = labels.copy()
    labels[~counts] = labels[counts].flat[0]
    return labels


def per_position(weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return weights of samples, or of their positions, for labels of a shape: (n, positions)."""
    if weights.ndim == 1:
        weights = weights.reshape(-1, *(1,) * (len(shape) - 1))
    elif weights.shape != shape:
        raise ValueError(
            f"sample_weight must be 1D or have the shape of y, {shape}, and has the shape {weights.shape}: "
            "it holds a weight for each sample, or for each label."
        )
    return np.broadcast_to(weights, shape).reshape(shape[0], -1)
