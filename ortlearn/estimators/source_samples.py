"""The samples of a source as training takes them: passes in chunks, shuffled, read ahead."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from ..exceptions import SourceError
from ..streams import Rows, Source, Turns, chunk_size, cut, prefetched, whole_blocks
from ..training import Data
from ..training.batches import epoch_order
from ..training.first_layers import Moments
from ..training.passes import Chunk
from .class_weights import objective_weights
from .input_validation import InputFeatures, read_samples
from .label_arrays import with_masked_labels
from .problem import Problem, label_spread
from .source_counts import Whole, checked_weights
from .weight_sums import scale_of

__all__ = ["SourceReader", "SourceSamples"]

#: Number of the shard that keys the order of blocks: no chunk has it.
BLOCKS = 2**64 - 1


class SourceReader:
    """What makes of rows of a source samples as a graph takes them.

    Parameters
    ----------
    problem : Problem
        What is trained.
    features : InputFeatures
        Features seen first.
    whole : Whole
        What is known of all rows.
    is_named : bool
        Whether the columns of the source are known by name, and come in order.

    Attributes
    ----------
    matrix_dtype : numpy.dtype or None
        Type of the matrix that the graph takes; None where it takes something else.
    """

    def __init__(self, problem: Problem, features: InputFeatures, whole: Whole, is_named: bool):
        self.problem, self._scale = problem, _weight_scale(problem, whole)
        entry = problem.trainable.entry
        takes_matrix = entry.front is None and entry.schema.is_number_matrix
        self.matrix_dtype = entry.schema.float_dtype if takes_matrix else None
        self._features = replace(features, names=None) if takes_matrix and is_named else features

    def read(self, rows: Rows) -> Data:
        """Return rows as the graph takes them."""
        problem = self.problem
        try:
            X = read_samples(problem, rows.X, self._features)
            weights = checked_weights(rows.sample_weight, len(rows), problem.source is None)
            y = with_masked_labels(rows.y, weights)
            labels = problem.encoder.encode_known(y, len(rows))
            weights = objective_weights(problem, y, weights, len(rows), self._scale)
        except ValueError as error:
            if not rows.where or isinstance(error, SourceError):
                raise
            raise ValueError(f"In {rows.where} of the source: {error}") from error
        return Data(X, labels, weights)


def _weight_scale(problem: Problem, whole: Whole) -> tuple[float, float]:
    """Return a power of two to divide weights by, and the mean of what is left of them."""
    unit = scale_of(whole.largest)
    total = problem.total_weight(whole.labels, whole.weights, whole.total)
    if not total > 0:
        raise ValueError("All weights are zero: class_weight must be above 0 for a class that occurs.")
    return unit, total / unit / whole.n_rows


class SourceSamples:
    """All samples of a source.

    Parameters
    ----------
    source : Source
        Rows.
    whole : Whole
        What the counting pass found.
    batch_size, shuffle_buffer : int
        Rows of a batch, and rows that are held at a time.

    Attributes
    ----------
    n_samples : int
        Rows of a pass.
    size : int
        Rows of a chunk.
    label_moments : tuple of ndarray and float, or None
        Mean and deviation of encoded labels, once they are measured.
    """

    def __init__(self, source: Source, whole: Whole, batch_size: int, shuffle_buffer: int):
        self.whole = whole
        self.n_samples = whole.n_rows
        self.size = chunk_size(whole.n_rows, batch_size, shuffle_buffer)
        self.label_moments: tuple[np.ndarray, float] | None = None
        self._source = source
        # What reads ahead begins a chunk once the one before the last is done with.
        self._turns = Turns()

    @property
    def summary(self) -> bytes:
        """Text of what is known of all rows, to tell other ones by."""
        whole = self.whole
        labels = None if whole.labels is None else whole.labels.tolist()
        return repr((whole.n_rows, whole.largest, whole.weights.tolist(), labels)).encode()

    @property
    def is_one_chunk(self) -> bool:
        """Whether the buffer holds all rows: they are read once, and trained on in memory."""
        return self.size == self.n_samples

    def first(self) -> Rows:
        """Return the rows of the first chunk, in their own order."""
        with closing(cut(self._source.blocks(), self.size)) as chunks:
            return next(chunks)

    def cut(self, blocks: Iterator[Rows], skipped: int = 0) -> Iterator[Rows]:
        """Yield the rows of blocks in chunks, columns of numbers as a matrix where the graph takes one."""
        return cut(blocks, self.size, self._matrix_dtype, skipped, self._turns)

    # As the graph takes them

    def understood_by(self, problem: Problem, features: InputFeatures) -> None:
        """Take note of how rows are read and labels are encoded."""
        self._reader = SourceReader(problem, features, self.whole, self._source.names is not None)
        self._matrix_dtype = self._reader.matrix_dtype

    def read(self, rows: Rows) -> Data:
        """Return rows as the graph takes them."""
        return self._reader.read(rows)

    def _chunks(self) -> Generator[Data, None, None]:
        """Yield all rows in their own order, read ahead."""
        return prefetched(lambda: map(self.read, self.cut(self._source.blocks())))

    def measure(self, preparation: Any) -> dict[str, Moments]:
        """Return the moments of features, by name, and take note of those of labels: a pass over all rows.

        ``preparation`` returns the features of some samples.
        """
        found: dict[str, Moments] = {}
        labels = Moments()
        for data in self._chunks():
            for name, features in preparation.features(data).items():
                if getattr(features, "ndim", 0) == 2 and features.dtype.kind == "f":
                    found.setdefault(name, Moments()).add(features, data.row_weight)
            labels.add(data.y.reshape(len(data), -1).astype(np.float64), data.row_weight)
        mean, variance = labels.mean_and_variance
        self.label_moments = np.zeros(len(mean)), 1.0
        if self._reader.problem.predicts_labels:
            self.label_moments = mean, label_spread(mean, variance)
        return found

    def mean_loss(self, runner: Any) -> float:
        """Return the mean of the losses of all rows."""
        total = weight = 0.0
        for data in self._chunks():
            weights = data.row_weight
            share = float(len(data) if weights is None else weights.sum(dtype=np.float64))
            if share > 0:
                total += share * runner.mean_loss(data.X, data.y, data.sample_weight)
                weight += share
        return total / weight

    def passes(self, prepare: Callable[[Data], Data], seed: int | None, version: int) -> SourcePasses:
        """Return the passes of a training, with what becomes of every chunk, seed and version of orders."""
        return SourcePasses(self, prepare, seed, version)

    def blocks_after(
        self, epoch: int, seed: int | None, skipped: int, version: int
    ) -> tuple[Iterator[Rows], int]:
        """Return the blocks of a pass after some rows, and the rows of them that are left out yet.

        Blocks come in random order where sizes are known.
        """
        sizes = self._source.sizes
        if sizes is None:
            return self._source.blocks(), skipped
        numbers = epoch_order(len(sizes), seed, epoch, BLOCKS, version).tolist()
        numbers, skipped = whole_blocks(numbers, sizes, skipped)
        return self._source.blocks(numbers), skipped


class SourcePasses:
    """Passes over a source.

    Parameters
    ----------
    samples : SourceSamples
        Samples.
    prepare : callable
        What becomes of a chunk before it is trained on.
    seed : int or None
        Seed of orders; None keeps rows in their own.
    version : int
        Version of the orders.
    """

    def __init__(
        self, samples: SourceSamples, prepare: Callable[[Data], Data], seed: int | None, version: int
    ):
        self.n_samples = samples.n_samples
        self._samples, self._prepare, self._seed, self._version = samples, prepare, seed, version

    def chunks(self, epoch: int, n_rows: int) -> Generator[Chunk, None, None]:
        """Yield the chunks of a pass after some rows of it; they are checked in the thread that trains."""
        samples = self._samples
        number, done = divmod(n_rows, samples.size)
        blocks, skipped = samples.blocks_after(epoch, self._seed, number * samples.size, self._version)
        with closing(prefetched(lambda: samples.cut(blocks, skipped))) as chunks:
            for rows in chunks:
                if len(rows) != min(samples.size, self.n_samples - number * samples.size):
                    self._say_that_rows_changed(number * samples.size + len(rows))
                order = epoch_order(len(rows), self._seed, epoch, number, self._version)
                yield self._prepare(samples.read(rows)), order[done:]
                number, done = number + 1, 0
        if number * samples.size < self.n_samples:
            self._say_that_rows_changed(number * samples.size)

    def _say_that_rows_changed(self, found: int) -> None:
        raise SourceError(
            f"The source has given {found} rows in this pass, or more, and {self.n_samples} when they were "
            "counted: it must give the same rows, in the same order, whenever it is read."
        )
