"""The counting pass: rows, classes and weights of a source, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from ..exceptions import SourceError
from ..preprocessing.columns import count_rows
from ..streams import Rows, Source, cut
from ..training.progress import progress_bar
from .label_arrays import numbers_of_positions, per_position, with_masked_labels
from .samples import Samples, flat_weights
from .targets import check_labels

__all__ = ["Whole", "checked_weights", "count"]

#: Rows that are counted at once, whatever the blocks: sums do not depend on these.
COUNTED = 65_536


@dataclass(frozen=True)
class Whole:
    """What is known of all rows of a source.

    Attributes
    ----------
    n_rows : int
        Their number.
    labels : ndarray of shape (k,) or (k, n_outputs), or None
        Labels that occur, of a classifier.
    weights : ndarray of shape (k,)
        Sum of the weights of the rows of each label; of all rows where labels are not counted.
    largest : float or None
        Largest weight; None for rows without weights.
    """

    n_rows: int
    labels: np.ndarray | None
    weights: np.ndarray
    largest: float | None

    def summary(self, first: Samples) -> tuple[Any, np.ndarray | None]:
        """Return labels and weights that stand for those of all rows; the first ones, where they are all."""
        if count_rows(first.X) == self.n_rows:
            return first.y, first.sample_weight
        return self.labels, self.weights

    @property
    def classes(self) -> list[np.ndarray] | None:
        """Classes of each column of labels."""
        if self.labels is None:
            return None
        return [np.unique(column) for column in self.labels.reshape(len(self.labels), -1).T]


class _Labels:
    """Labels that occurred, and the sums of their weights."""

    def __init__(self, one_by_one: bool) -> None:
        self._one_by_one = one_by_one
        self._sums: dict[Any, float] = {}
        self._like: np.ndarray | None = None

    def add(self, y: Any, weights: np.ndarray | None) -> None:
        values = y.toarray() if issparse(y) else np.asarray(y)
        if self._one_by_one:
            weights = np.ones(len(values)) if weights is None else weights
            weights = per_position(weights, values.shape).ravel() * len(values) / values.size
            values = values.ravel()
        values = values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
        self._like = values[:0] if self._like is None else np.concatenate([self._like, values[:0]])
        found: Any
        if values.ndim == 2 and values.dtype == object:  # rows of texts, which numpy does not sort
            found = np.empty(len(values), dtype=object)
            found[:] = list(map(tuple, values.tolist()))
            found, numbers = np.unique(found, return_inverse=True)
        else:
            found, numbers = np.unique(values, axis=0 if values.ndim == 2 else None, return_inverse=True)
        sums = np.bincount(numbers.ravel(), weights, minlength=len(found))
        labels = map(tuple, found.tolist()) if found.ndim == 2 else found.tolist()
        for label, weight in zip(labels, sums.tolist(), strict=True):
            self._sums[label] = self._sums.get(label, 0.0) + weight

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        assert self._like is not None
        labels = sorted(self._sums)
        array = np.empty((len(labels), *self._like.shape[1:]), dtype=self._like.dtype)
        array[...] = np.array(labels, dtype=self._like.dtype).reshape(array.shape)
        return array, np.array([self._sums[label] for label in labels])


def checked_weights(sample_weight: Any, n_rows: int, of_file: bool) -> np.ndarray | None:
    """Return weights of some rows as float64, not negative and finite; all may be zero.

    The labels of a sample of a file may have a weight each.
    """
    weights = flat_weights(sample_weight)
    if weights is None:
        return None
    if of_file and np.ndim(weights) > 1:
        return numbers_of_positions(weights, n_rows)
    checked = check_array(weights, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if checked.shape != (n_rows,) or checked.min() < 0:
        fault = (
            f"the shape {checked.shape} for {n_rows} rows"
            if checked.shape != (n_rows,)
            else "negative values"
        )
        raise ValueError(f"sample_weight has {fault}: it must be a number >= 0 for each row.")
    return checked


def count(
    source: Source,
    is_classifier: bool,
    description: str,
    verbose: bool,
    of_file: bool = False,
    one_by_one: bool = False,
) -> Whole:
    """Return what a pass over labels and weights tells; none is made where the source knows it already.

    What is trained is a scikit-learn model, or that ``of_file``. The labels of a sample are counted
    ``one_by_one`` where they are an array.

    Raises
    ------
    SourceError
        If the source is empty or cannot be read.
    ValueError
        If labels are missing, or weights negative, not finite or all zero.
    """
    first = next(iter(source.blocks(features=False)), None)
    if first is None:
        raise SourceError(
            "The source has no rows: check its path, its filter, or the function that reads it."
        )
    if source.sizes is not None and first.sample_weight is None and (first.y is None or not is_classifier):
        n_rows = sum(source.sizes)
        return Whole(n_rows, None, np.array([float(n_rows)]), None)
    labels = _Labels(one_by_one) if is_classifier and first.y is not None else None
    n_rows, total, largest = 0, 0.0, None
    for rows in _shown(source, description, verbose):
        weights = checked_weights(rows.sample_weight, len(rows), of_file)
        y = with_masked_labels(rows.y, weights)
        check_labels(y)
        n_rows += len(rows)
        total += len(rows) if weights is None else float(weights.sum()) * len(weights) / weights.size
        if weights is not None:
            largest = max(largest or 0.0, float(weights.max()))
        if labels is not None:
            labels.add(y, weights)
    if largest == 0.0:
        raise ValueError("sample_weight is zero for every row: at least one must be above 0.")
    if labels is None:
        return Whole(n_rows, None, np.array([total]), largest)
    return Whole(n_rows, *labels.result(), largest)


def _shown(source: Source, description: str, verbose: bool) -> Iterator[Rows]:
    """Yield chunks of labels and weights while a progress bar shows how many have passed."""
    n_chunks = None if source.sizes is None else -(-sum(source.sizes) // COUNTED)
    with progress_bar(n_chunks, f"{description} counting", verbose) as advance:
        for rows in cut(source.blocks(features=False), COUNTED):
            yield rows
            advance({})
