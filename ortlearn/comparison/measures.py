"""Measures: losses of samples that candidates were not trained on, or the objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from ..data.columns import Columns
from ..data.samples import Data

__all__ = [
    *("CLONES", "MANY_SAMPLES", "Losses", "Measure", "Part", "State", "Weights"),
    *("equal_rows", "folds", "folds_without_copies", "misclassified", "weights_of"),
]

#: Number of cross-validation folds, and of those for which a model is fitted again.
FOLDS, CLONES = 5, 3
#: With more samples, that many are drawn, and only one fold is evaluated.
MANY_SAMPLES = 5_000

Weights = Mapping[str, np.ndarray]


class State(Protocol):
    """Result of a training, as a comparison reads it: a ``TrainingState``."""

    @property
    def weights(self) -> Any:
        """Weights for predictions."""

    def with_weights(self, weights: Any) -> Any:
        """Return the state with other weights."""

    def back_to(self, weights: Any) -> Any:
        """Return the state with the starting weights, since those after the training are not better."""


@dataclass(frozen=True)
class Part:
    """Some of the samples."""

    data: Data  # inputs of the training graph
    samples: Any = None  # as they were given; None if no candidate needs them
    numbers: np.ndarray | None = None  # of the samples among all; None for all, or others

    def take(self, numbers: np.ndarray) -> Part:
        """Return some of all samples."""
        return Part(self.data.take(numbers), self.samples.take(numbers), numbers)


class Measure:
    """Losses of samples, for candidates that are trained on others."""

    #: Whether errors are compared instead of losses.
    by_errors: bool = False
    #: Whether losses are those of classifiers, and bounded.
    bounds: bool = False
    #: Whether candidates are excluded whose mean loss, without a bound, exceeds that of the start.
    keeps_losses: bool = False

    def parts(self) -> Iterator[tuple[Part, Part]]:
        """Yield parts to train on, and parts to measure on."""
        raise NotImplementedError

    def scores(self, weights: Weights, part: Part) -> Any:
        """Return the values that determine the losses, by default the weights."""
        return weights

    def losses(self, scores: Any, part: Part) -> np.ndarray:
        """Return the losses of shape (n,); one value if only a mean is known."""
        raise NotImplementedError

    def errors(self, weights: Weights, part: Part) -> np.ndarray | None:
        """Return which samples are misclassified, of shape (n,); None if losses alone are compared."""
        return None

    def weights(self, part: Part) -> np.ndarray:
        """Return the weights of the losses."""
        return weights_of(part.data)


@dataclass(frozen=True)
class Losses(Measure):
    """Losses for given weights, to compare finished trainings: the objective, or losses of samples."""

    function: Callable[[Weights], Any]  # returns losses of shape (n,), or one value
    part: Part | None = None  # samples of the losses; None for one value

    def parts(self) -> Iterator[tuple[Any, Any]]:
        yield self.part, self.part

    def losses(self, scores: Weights, part: Part | None) -> np.ndarray:
        return np.atleast_1d(self.function(scores))

    def weights(self, part: Part | None) -> np.ndarray:
        return np.ones(1) if part is None else super().weights(part)


def weights_of(data: Data) -> np.ndarray:
    """Return the weights of samples as float64."""
    return np.ones(len(data)) if data.weight_per_sample is None else data.weight_per_sample.astype(np.float64)


def misclassified(scores: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    """Return 1 for samples whose score, or largest one of several, is that of another class, else 0."""
    found = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0
    return np.where(np.isnan(scores).any(axis=1), np.inf, found != classes)


def folds(
    labels: np.ndarray | None,
    n_samples: int,
    random_state: np.random.RandomState,
    n_folds: int = FOLDS,
    most: int = MANY_SAMPLES,
) -> Iterator[Any]:
    """Yield indices of training and validation samples, stratified if there are classes.

    If there are more than ``most`` samples, some are drawn, and there is one pair.
    """
    from sklearn.model_selection import KFold, StratifiedKFold  # slow import

    if n_samples > most:
        drawn = random_state.choice(n_samples, MANY_SAMPLES, replace=False)
        yield np.sort(drawn[MANY_SAMPLES // FOLDS :]), np.sort(drawn[: MANY_SAMPLES // FOLDS])
        return
    n_folds = min(n_folds, n_samples)
    by_class = labels is not None and np.unique(labels, return_counts=True)[1].min() >= n_folds
    kind = StratifiedKFold if by_class else KFold
    parts = kind(n_folds, shuffle=True, random_state=random_state)
    yield from parts.split(np.zeros((n_samples, 1)), labels if by_class else None)


def folds_without_copies(
    labels: np.ndarray | None, data: Data, random_state: np.random.RandomState
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return :func:`folds` in which no held-out sample is repeated, there or among those to train on.

    The list is empty if all samples are equal.
    """

    def copies(samples: np.ndarray) -> np.ndarray | None:
        some = data.take(samples)
        arrays = [*(some.X.arrays.values() if isinstance(some.X, Columns) else [some.X]), some.y]
        return None if any(map(issparse, arrays)) else numbers_of_copies(arrays)

    return folds_of_different(labels, len(data), copies, random_state)


def folds_of_different(
    labels: np.ndarray | None,
    n_samples: int,
    copies: Callable[[np.ndarray], np.ndarray | None],
    random_state: np.random.RandomState,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return folds without copies; ``copies`` returns the :func:`numbers_of_copies` of samples."""
    found = list(folds(labels, n_samples, random_state))
    samples = np.sort(np.concatenate(found[0]))
    numbers = copies(samples)
    if numbers is None:
        return found
    _, first = np.unique(numbers, return_index=True)
    if len(first) < 2:
        return []
    own = None if labels is None else labels[samples[first]]
    parts = folds(own, len(first), random_state)
    return [(samples[np.isin(numbers, kept)], samples[first[left_out]]) for kept, left_out in parts]


def numbers_of_copies(arrays: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return numbers of the samples of features and labels, equal for copies; None if there are none.

    Samples with the same features and labels are copies, unless they have few categories: in one column at
    least, most different samples must differ.
    """
    columns = np.column_stack([_numeric(array).reshape(len(array), -1) for array in arrays]) + 0.0  # not -0.0
    first, numbers = equal_rows(columns)
    if len(first) == len(columns):
        return None
    is_continuous = any(2 * len(np.unique(column)) > len(first) for column in columns[first].T)
    return numbers if is_continuous else None


def equal_rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of each group of rows with equal bytes, and the group of each row."""
    matrix = np.ascontiguousarray(matrix)
    rows = matrix.view(np.dtype((np.void, matrix.shape[1] * matrix.itemsize))).ravel()
    _, first, groups = np.unique(rows, return_index=True, return_inverse=True)
    return first, groups


def _numeric(array: np.ndarray) -> np.ndarray:
    """Return an array, or the numbers of its texts."""
    is_numeric = array.dtype.kind in "biuf"
    return array if is_numeric else np.unique(array.astype(str), return_inverse=True)[1]
