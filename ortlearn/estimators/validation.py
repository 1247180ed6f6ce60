"""Rows to validate on: split off or given, and what is measured on them while the training runs."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _check_sample_weight

from ..preprocessing.columns import as_array_like, count_rows
from ..training import Data, Measured
from .inference import LiveInference
from .problem import Problem
from .scoring import scorer_of

__all__ = ["Rows", "Validation", "check_weights", "flat_weights", "split_off"]


@dataclass(frozen=True)
class Rows:
    """Rows as they were given, in a form that can be counted and picked.

    Attributes
    ----------
    X : array-like, sparse matrix, frame or mapping
        Features.
    y : array-like or None
        Labels.
    sample_weight : array-like of shape (n_samples,) or (n_samples, 1), or None
        Weights; a column is made a vector.
    """

    X: Any
    y: Any
    sample_weight: Any = None

    def __post_init__(self) -> None:
        for name in ("X", "y"):
            object.__setattr__(self, name, as_array_like(getattr(self, name), name))
        object.__setattr__(self, "sample_weight", flat_weights(self.sample_weight))

    def take(self, numbers: np.ndarray) -> Rows:
        """Return some of the rows."""
        if isinstance(self.X, Mapping):
            X: Any = {key: _take(values, numbers) for key, values in self.X.items()}
        else:
            X = _take(self.X, numbers)
        return Rows(X, _take(self.y, numbers), _take(self.sample_weight, numbers))


def flat_weights(sample_weight: Any) -> Any:
    """Return the weights of samples as a vector where they are a column; anything else as it is.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or (n_samples, 1), float or None
        Weights.

    Returns
    -------
    array-like of shape (n_samples,), float or None
        The same weights.
    """
    weights = as_array_like(sample_weight, "sample_weight")
    if weights is None or np.ndim(weights) != 2 or np.shape(weights)[1] != 1:
        return weights
    return np.asarray(weights).ravel()


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return the weights of rows as an array.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or float
        Weights.
    n_rows : int
        Number of rows.

    Returns
    -------
    ndarray of shape (n_samples,), float64
        Weights.

    Raises
    ------
    ValueError
        If one is below zero or not finite, or all are zero.
    """
    weights = _check_sample_weight(
        sample_weight, np.empty((n_rows, 1)), dtype=np.float64, ensure_non_negative=True
    )
    if not weights.max() > 0:
        raise ValueError("sample_weight is zero for every row: at least one must be above 0.")
    return weights


def split_off(rows: Rows, fraction: float, random_state: Any, stratify: bool) -> tuple[Rows, Rows]:
    """Split rows to validate on off the others.

    Parameters
    ----------
    rows : Rows
        All rows.
    fraction : float
        Share of the rows to validate on.
    random_state : int, RandomState instance or None
        Draws them.
    stratify : bool
        Whether both parts are to have the classes in the same shares.

    Returns
    -------
    Rows, Rows
        Rows to train on, rows to validate on.

    Raises
    ------
    ValueError
        If there are too few rows, too few of a class, or none with a weight on one side.
    """
    from sklearn.model_selection import train_test_split  # longer to import than all of ortlearn

    n_rows = count_rows(rows.X)
    try:
        kept, held_out = train_test_split(
            np.arange(n_rows),
            test_size=fraction,
            random_state=check_random_state(random_state),
            stratify=np.asarray(rows.y) if stratify else None,
        )
    except ValueError as error:
        raise ValueError(
            f"early_stopping needs rows to validate on, and validation_fraction={fraction} of {n_rows} rows "
            f"cannot be split off: {error} Pass X_val and y_val, or set another validation_fraction."
        ) from error
    parts = rows.take(np.sort(kept)), rows.take(np.sort(held_out))
    if rows.sample_weight is not None and not all(np.any(part.sample_weight) for part in parts):
        raise ValueError(
            "All rows with a sample_weight above zero went to one side when early_stopping split off rows to "
            "validate on: pass X_val and y_val, or set another validation_fraction or random_state."
        )
    return parts


class Validation:
    """Loss and score on rows that are not trained on.

    Parameters
    ----------
    owner : BaseOrtGradientEstimator
        Whose ``scoring`` counts.
    problem : Problem
        What is trained.
    rows : Rows
        Rows as they were given, for scores.
    data : Data
        The same rows as the graph takes them, for losses.
    """

    def __init__(self, owner: Any, problem: Problem, rows: Rows, data: Data):
        self._runner = LiveInference(problem, problem.trainable.model, owner._device(), owner.n_jobs)
        self._rows = rows
        self._data = data
        self._score = scorer_of(owner, problem, count_rows(rows.X))
        self._view = copy.copy(owner)
        self._view.__dict__.update(owner._fitted_kind(problem), _inference=self._runner, onnx_=None)

    def measure(self, weights: Mapping[str, np.ndarray]) -> Measured:
        """Return loss and score of the model with some weights."""
        self._runner.weights = weights
        rows, data = self._rows, self._data
        loss = self._runner.mean_loss(data.X, data.y, weights, data.sample_weight)
        if self._score is None:
            return Measured(loss)
        options = {} if rows.sample_weight is None else {"sample_weight": rows.sample_weight}
        return Measured(loss, float(self._score(self._view, rows.X, rows.y, **options)))


def _take(values: Any, numbers: np.ndarray) -> Any:
    return None if values is None else _safe_indexing(values, numbers)
