"""The counting pass: rows, classes and weights of a source, before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

from ..exceptions import SourceError
from ..streams import Rows, Source, cut
from ..training.progress import progress_bar
from .label_arrays import numbers_of_positions, with_masked_labels
from .samples import flat_weights
from .targets import check_labels
from .weight_sums import BLOCK, LabelSums

__all__ = ["RowCounter", "Whole", "checked_weights", "count"]


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
    total : float
        Sum of all weights.
    """

    n_rows: int
    labels: np.ndarray | None
    weights: np.ndarray
    largest: float | None
    total: float

    @property
    def classes(self) -> list[np.ndarray] | None:
        """Classes of each column of labels."""
        if self.labels is None:
            return None
        return [np.unique(column) for column in self.labels.reshape(len(self.labels), -1).T]

    def checked(self) -> Whole:
        """Return this, or raise a ValueError if weights are all zero or their sum is infinite."""
        if self.largest == 0.0:
            raise ValueError("sample_weight is zero for every row: at least one must be above 0.")
        if not math.isfinite(self.total):
            raise ValueError("The sum of sample_weight is infinite: divide the weights by their largest one.")
        return self

    @classmethod
    def of_parts(cls, parts: Sequence[Whole]) -> Whole:
        """Return what is known of the rows of several parts, after checks of all weights."""
        largest = [part.largest for part in parts if part.largest is not None]
        total = math.fsum(part.total for part in parts)
        found, weights = None, np.array([total])
        if parts[0].labels is not None:
            labels = LabelSums()
            for part in parts:
                labels.add(part.labels, part.weights)
            found, weights = labels.result()
        whole = cls(sum(part.n_rows for part in parts), found, weights, max(largest, default=None), total)
        return whole.checked()


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


class RowCounter:
    """What passes over labels and weights tell, of rows in blocks.

    Parameters
    ----------
    is_classifier, of_file : bool
        Whether the model is a classifier, and an ONNX file.
    one_by_one : bool
        Whether the labels of a sample, an array, are counted one by one.
    """

    def __init__(self, is_classifier: bool, of_file: bool, one_by_one: bool):
        self._is_classifier, self._of_file, self._one_by_one = is_classifier, of_file, one_by_one
        self._labels: LabelSums | None = None
        self._n_rows, self._n_positions = 0, 1
        self._largest: float | None = None
        self._sums: list[float] = []

    def add(self, rows: Rows) -> None:
        """Count some rows, after checks of their labels and weights."""
        weights = checked_weights(rows.sample_weight, len(rows), self._of_file)
        y = with_masked_labels(rows.y, weights)
        check_labels(y)
        self._n_rows += len(rows)
        with np.errstate(over="ignore"):  # it is an error once all are counted
            self._sums.append(len(rows) if weights is None else float(weights.sum()))
        if weights is not None:
            self._largest = max(self._largest or 0.0, float(weights.max()))
            self._n_positions = math.prod(weights.shape[1:])
        if self._is_classifier and y is not None:
            self._labels = self._labels or LabelSums(self._one_by_one)
            self._labels.add(y, weights)

    def result(self) -> Whole:
        """Return what is known of all of them."""
        total = math.inf if not math.isfinite(sum(self._sums)) else math.fsum(self._sums) / self._n_positions
        found, sums = (None, np.array([total])) if self._labels is None else self._labels.result()
        return Whole(self._n_rows, found, sums, self._largest, total)


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
    """
    first = next(iter(source.blocks(features=False)), None)
    if first is None:
        raise SourceError(
            "The source has no rows: check its path, its filter, or the function that reads it."
        )
    if source.sizes is not None and first.sample_weight is None and (first.y is None or not is_classifier):
        n_rows = sum(source.sizes)
        return Whole(n_rows, None, np.array([float(n_rows)]), None, float(n_rows))
    counter = RowCounter(is_classifier, of_file, one_by_one)
    for rows in _shown(source, description, verbose):
        counter.add(rows)
    return counter.result().checked()


def _shown(source: Source, description: str, verbose: bool) -> Iterator[Rows]:
    """Yield chunks of labels and weights while a progress bar shows how many have passed."""
    n_chunks = None if source.sizes is None else -(-sum(source.sizes) // BLOCK)
    with progress_bar(n_chunks, f"{description} counting", verbose) as advance:
        for rows in cut(source.blocks(features=False), BLOCK):
            yield rows
            advance({})
