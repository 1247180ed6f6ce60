"""The counting pass over a source, which finds the number of samples, classes and weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ...data.checksums import checksum
from ...data.chunks import cut
from ...data.sample_blocks import SampleBlock
from ...data.source_errors import located
from ...data.sources import Source
from ...exceptions import SourceError
from ...problem.samples import flat_weights, weights_of_samples
from ...targets.encoding import check_labels
from ...targets.label_arrays import not_one_per_sample, numbers_of_positions, with_masked_labels
from ...targets.weight_sums import BLOCK, LabelSums
from ...training.progress import progress_bar

__all__ = ["Counts", "SampleCounter", "SourceTotals", "checked_weights", "count"]


@dataclass(frozen=True)
class SourceTotals:
    """Counts of all samples of a source."""

    n_rows: int
    labels: np.ndarray | None  # distinct labels of a classifier
    weights: np.ndarray  # sum of the weights of each label, or of all
    largest: float | None  # largest weight
    total: float  # sum of all weights
    checksum: int = 0  # checksum of labels and weights, in blocks of a fixed size; 0 for shards

    @property
    def classes(self) -> list[np.ndarray] | None:
        """Classes of each column of labels."""
        if self.labels is None:
            return None
        return [np.unique(column) for column in self.labels.reshape(len(self.labels), -1).T]

    def text(self) -> str:
        """Return a text by which a resumed training detects other samples."""
        labels = None if self.labels is None else self.labels.tolist()
        counts = f"labels {labels} of weights {self.weights.tolist()}, the largest weight {self.largest}"
        return f"{self.n_rows} rows with checksum {self.checksum:08x} and {counts}"

    def checked(self) -> SourceTotals:
        """Return this object, or raise a ValueError if all weights are zero or their sum is infinite."""
        if self.largest == 0.0:
            raise ValueError("sample_weight is zero for every sample: at least one must be above 0.")
        if not math.isfinite(self.total):
            raise ValueError("The sum of sample_weight is infinite: divide the weights by their largest one.")
        return self

    @classmethod
    def of_parts(cls, parts: Sequence[SourceTotals]) -> SourceTotals:
        """Return the counts of several parts together, after checks of all weights."""
        largest = [part.largest for part in parts if part.largest is not None]
        total = math.fsum(part.total for part in parts)
        labels, weights = None, np.array([total])
        if parts[0].labels is not None:
            sums = LabelSums()
            for part in parts:
                sums.add(part.labels, part.weights)
            labels, weights = sums.result()
        n_samples = sum(part.n_rows for part in parts)
        return cls(n_samples, labels, weights, max(largest, default=None), total).checked()


@dataclass(frozen=True)
class Counts:
    """Counts of a source that are kept to resume a training."""

    whole: SourceTotals
    stamp: str | None = None  # recognises the source without reading it, if possible


def checked_weights(sample_weight: Any, n_samples: int, is_onnx: bool) -> np.ndarray | None:
    """Return the weights of samples, or of labels of an ONNX file, as float64; all may be zero."""
    weights = flat_weights(sample_weight)
    if weights is None:
        return None
    if np.ndim(weights) < 2:
        return weights_of_samples(weights, n_samples)
    if not is_onnx:
        raise ValueError(not_one_per_sample(weights.shape))
    return numbers_of_positions(weights, n_samples)


class SampleCounter:
    """Counter of samples, weights and labels (with ``flat_labels``, elements of arrays), block by block."""

    def __init__(self, is_classifier: bool, is_onnx: bool, flat_labels: bool):
        self._is_classifier, self._is_onnx, self._flat_labels = is_classifier, is_onnx, flat_labels
        self._labels: LabelSums | None = None
        self._n_samples, self._n_positions = 0, 1
        self._largest: float | None = None
        self._sums: list[float] = []
        self._checksum = 0

    def add(self, block: SampleBlock) -> None:
        """Check the labels and weights of some samples, and count them."""
        weights = checked_weights(block.sample_weight, len(block), self._is_onnx)
        y = with_masked_labels(block.y, weights)
        check_labels(y)
        self._n_samples += len(block)
        self._checksum = checksum((y, weights), self._checksum)
        with np.errstate(over="ignore"):  # SourceTotals.checked raises the error
            self._sums.append(len(block) if weights is None else float(weights.sum()))
        if weights is not None:
            self._largest = max(self._largest or 0.0, float(weights.max()))
            self._n_positions = math.prod(weights.shape[1:])
        if self._is_classifier and y is not None:
            self._labels = self._labels or LabelSums(self._flat_labels)
            try:
                self._labels.add(y, weights)
            except TypeError:  # labels that cannot be compared
                check_classification_targets(y)
                raise

    def result(self) -> SourceTotals:
        """Return the counts of all samples."""
        total = math.inf if not math.isfinite(sum(self._sums)) else math.fsum(self._sums) / self._n_positions
        labels, sums = (None, np.array([total])) if self._labels is None else self._labels.result()
        return SourceTotals(self._n_samples, labels, sums, self._largest, total, self._checksum)


def count(
    source: Source,
    is_classifier: bool,
    description: str,
    verbose: bool,
    is_onnx: bool = False,
    flat_labels: bool = False,
) -> SourceTotals:
    """Return the counts of a source by a pass over labels and weights, unless the source knows them."""
    first = next(iter(source.blocks(features=False)), None)
    if first is None:
        raise SourceError(
            "The source has no samples: check its path, its filter, or the function that reads it."
        )
    if source.sizes is not None and first.sample_weight is None and first.y is None:
        n_samples = sum(source.sizes)
        return SourceTotals(n_samples, None, np.array([float(n_samples)]), None, float(n_samples))
    counter = SampleCounter(is_classifier, is_onnx, flat_labels)
    for block in _shown(source, description, verbose):
        try:
            counter.add(block)
        except (ValueError, TypeError) as error:
            check = SampleCounter(is_classifier, is_onnx, flat_labels).add
            raise located(block, check, error) from error
    return counter.result().checked()


def _shown(source: Source, description: str, verbose: bool) -> Iterator[SampleBlock]:
    """Yield chunks of labels and weights, with a progress bar."""
    n_chunks = None if source.sizes is None else -(-sum(source.sizes) // BLOCK)
    with progress_bar(n_chunks, f"{description} counting", verbose) as advance:
        for block in cut(source.blocks(features=False), BLOCK):
            yield block
            advance({})
