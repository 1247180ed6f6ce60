"""Samples of a call, their weights, and the split into training and validation samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.utils import _safe_indexing, check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from ..data.sample_blocks import weights_fault
from ..exceptions import limit_address
from ..preprocessing.columns import as_array_like, count_samples, shape_of
from ..targets.encoding import check_labels
from ..targets.label_arrays import check_weights_of_positions, with_masked_labels
from .configuration import Configuration

__all__ = [
    "Samples",
    "check_lengths",
    "check_weights",
    "flat_weights",
    "hold_out",
    "take",
    "weights_of_samples",
]


@dataclass(frozen=True)
class Samples:
    """Samples of a call, not yet validated."""

    X: Any
    y: Any
    sample_weight: Any = None

    def __post_init__(self) -> None:
        for name in ("X", "y"):
            object.__setattr__(self, name, as_array_like(getattr(self, name), name))
        object.__setattr__(self, "sample_weight", flat_weights(self.sample_weight))
        object.__setattr__(self, "y", with_masked_labels(self.y, self.sample_weight))

    def with_checked_weights(self) -> Samples:
        """Return the samples with weights as float64, checked by :func:`check_weights`."""
        if self.sample_weight is None:
            return self
        return replace(self, sample_weight=check_weights(self.sample_weight, count_samples(self.X)))

    def take(self, numbers: np.ndarray) -> Samples:
        """Return the samples with these indices."""
        if isinstance(self.X, Mapping):
            X: Any = {key: _safe_take(values, numbers) for key, values in self.X.items()}
        else:
            X = _safe_take(self.X, numbers)
        return Samples(X, _safe_take(self.y, numbers), _safe_take(self.sample_weight, numbers))

    def joined(self, other: Samples) -> Samples:
        """Return these samples, then others."""
        weights = [own.sample_weight for own in (self, other)]
        if any(own is not None for own in weights):
            pairs = zip(weights, (self, other), strict=True)
            weights = [np.ones(count_samples(part.X)) if own is None else own for own, part in pairs]
        X: Any = [self.X, other.X]
        if any(map(issparse, X)):
            X = vstack(X, format="csr")
        elif all(hasattr(own, "iloc") for own in X):
            import pandas as pd

            X = pd.concat(X, ignore_index=True)
        else:
            X = np.concatenate([np.asarray(own) for own in X])
        y = np.concatenate([np.asarray(own.y) for own in (self, other)])
        return Samples(X, y, None if weights[0] is None else np.concatenate(weights))


def flat_weights(sample_weight: Any) -> Any:
    """Return sample weights, flattened if they are a column."""
    weights = as_array_like(sample_weight, "sample_weight")
    if weights is None or len(shape := shape_of(weights, "sample_weight")) != 2 or shape[1] != 1:
        return weights
    return np.asarray(weights).ravel()


def check_weights(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Check sample weights, and return them as float64 of shape (n_samples,) or (n_samples, ...).

    A single number is repeated.
    """
    if np.ndim(sample_weight) > 1:
        return check_weights_of_positions(sample_weight, n_samples)
    weights = sample_weight if np.ndim(sample_weight) else np.full(n_samples, sample_weight)
    weights = weights_of_samples(weights, n_samples)
    if not weights.max() > 0:
        raise ValueError("sample_weight is zero for every sample: at least one must be above 0.")
    return weights


def weights_of_samples(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Check weights of shape (n_samples,), which may all be zero, and return them as float64."""
    weights = np.asarray(sample_weight)
    if weights.shape != (n_samples,):
        raise ValueError(weights_fault(f"the shape {weights.shape} for {n_samples} samples"))
    try:
        numbers = None if weights.dtype.kind in "USTMmVc" else weights.astype(np.float64)
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise ValueError(f"sample_weight must contain numbers, and has type {weights.dtype}.")
    numbers = check_array(numbers, ensure_2d=False, ensure_min_samples=0, input_name="sample_weight")
    if numbers.min(initial=0.0) < 0:
        raise ValueError(weights_fault("negative values"))
    return numbers


def check_lengths(X: Any, y: Any) -> None:
    """Raise an error if the numbers of samples in X and y differ, or a label is missing."""
    n_samples = count_samples(X)
    if y is not None:
        check_consistent_length(np.empty(n_samples), y)
        check_labels(y)


def hold_out(
    samples: Samples, configuration: Configuration, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of training and validation samples, stratified for labels of one column."""
    check_lengths(samples.X, samples.y)
    samples, y = samples.with_checked_weights(), samples.y
    is_classifier = configuration.estimator_type == "classifier"
    stratify = is_classifier and y is not None and np.shape(y)[1:] in ((), (1,))
    if stratify:
        check_classification_targets(y)
    parts = _split(samples, configuration.stopping.validation_fraction, random_state, stratify)
    weights = samples.sample_weight
    if weights is not None and not all(np.any(weights[part]) for part in parts):
        raise ValueError(
            "Training or validation samples all have a sample_weight of zero after the split for validation: "
            "pass X_val and y_val, or change validation_fraction or random_state."
        )
    return parts


def _split(
    samples: Samples, fraction: float, random_state: np.random.RandomState, stratify: bool
) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.model_selection import train_test_split  # slow import

    n_samples = count_samples(samples.X)
    try:
        kept, held_out = train_test_split(
            np.arange(n_samples),
            test_size=fraction,
            random_state=random_state,
            stratify=np.asarray(samples.y) if stratify else None,
        )
    except ValueError as error:
        raise ValueError(
            f"early_stopping cannot hold out validation_fraction={fraction} of {n_samples} samples: {error} "
            f"Pass X_val and y_val, or change validation_fraction.{limit_address('rare-classes')}"
        ) from error
    return np.sort(kept), np.sort(held_out)


def take(X: Any, numbers: np.ndarray) -> Any:
    """Return a copy of some samples of an array, a sparse matrix or a frame."""
    if hasattr(X, "iloc"):
        some = X.iloc[numbers]
        return (
            some.copy() if hasattr(some, "copy") else some
        )  # a pandas view would keep all samples in memory
    if isinstance(X, list):  # an array of numbers and texts would contain texts
        return [X[number] for number in numbers]
    return X[numbers] if hasattr(X, "shape") else np.asarray(X)[numbers]


def _safe_take(values: Any, numbers: np.ndarray) -> Any:
    return None if values is None else _safe_indexing(values, numbers)
