"""Samples of a source for the training: shuffled passes in chunks, read in a thread."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from ...data.chunks import ArrayPool, chunk_size, cut, whole_blocks
from ...data.orders import epoch_order
from ...data.passes import Chunk, PassesInMemory
from ...data.prefetch import prefetched
from ...data.sample_blocks import SampleBlock
from ...data.samples import Data
from ...data.source_errors import located
from ...data.sources import Source
from ...exceptions import SourceError
from ...problem.configuration import Runtime
from ...problem.input_validation import InputFeatures, read_samples
from ...problem.label_scales import label_moments, score_moments
from ...problem.objective_weights import objective_weights
from ...problem.problem import Problem
from ...targets.label_arrays import with_masked_labels
from ...targets.weight_sums import scale_of
from ...training.graphs.first_layers import Moments
from ...training.graphs.task import TrainingTask
from .counts import SourceTotals, checked_weights

__all__ = ["OneChunk", "SourceReader", "SourceSamples", "add_moments", "flat_labels"]

#: Shard number for the order of blocks, which is not the number of any chunk.
BLOCKS = 2**64 - 1


class SourceReader:
    """Reader that converts samples of a source, of which ``features`` are the first, to inputs of a graph.

    With ``is_named``, the source selects its columns by name, in a fixed order.
    """

    def __init__(self, problem: Problem, features: InputFeatures, whole: SourceTotals, is_named: bool):
        self.problem, self._scale = problem, _weight_scale(problem, whole)
        entry = problem.trainable.entry
        takes_matrix = entry.sklearn_steps is None and entry.schema.is_number_matrix
        # Type of the input if it is a matrix.
        self.matrix_dtype = entry.schema.float_dtype if takes_matrix else None
        self._features = replace(features, names=None) if takes_matrix and is_named else features

    def read(self, block: SampleBlock) -> Data:
        """Validate samples, and convert them to the inputs of the graph; errors name the batch."""
        try:
            return self._read(block)
        except (ValueError, TypeError) as error:
            raise located(block, self._read, error) from error

    def _read(self, block: SampleBlock) -> Data:
        problem = self.problem
        X = read_samples(problem, block.X, self._features)
        weights = checked_weights(block.sample_weight, len(block), problem.source is None)
        y = with_masked_labels(block.y, weights)
        labels = problem.encoder.encode_known(y, len(block))
        return Data(X, labels, objective_weights(problem, y, weights, len(block), self._scale))


def add_moments(moments: dict[str, Moments], columns: Mapping[str, Any], data: Data) -> None:
    """Add the moments of the features of some samples, by the name of their input."""
    for name, features in columns.items():
        if getattr(features, "ndim", 0) == 2 and features.dtype.kind == "f":
            moments.setdefault(name, Moments()).add(features, data.weight_per_sample)


def flat_labels(data: Data) -> np.ndarray:
    """Return encoded labels as a float64 matrix."""
    return data.y.reshape(len(data), -1).astype(np.float64)


def _weight_scale(problem: Problem, whole: SourceTotals) -> tuple[float, float]:
    """Return a power of two as divisor of the weights, and the mean of the divided weights."""
    unit = scale_of(whole.largest)
    total = problem.total_weight(whole.labels, whole.weights, whole.total)
    if not total > 0:
        raise ValueError("All weights are zero: class_weight must be above 0 for a class that occurs.")
    return unit, total / unit / whole.n_rows


class LocalSamples:
    """Samples whose training steps run in this process."""

    #: Whether steps keep connections to other machines.
    is_remote = False

    def new_step(self, runtime: Runtime, task: TrainingTask, prepare: Any) -> Any:
        """Return the training step of a task."""
        return runtime.new_step(task)


class OneChunk(LocalSamples):
    """All samples in memory: a source of one chunk."""

    #: What is known of them without reading their arrays.
    summary = b""

    def __init__(self, problem: Problem, data: Data):
        self._problem, self._data, self.n_samples = problem, data, len(data)

    def texts(self) -> dict[str, str]:
        """Return the texts of the fingerprint for samples without a source."""
        return {"source": "None"}

    @property
    def label_moments(self) -> tuple[np.ndarray, float]:
        """Mean and deviation of the labels."""
        return label_moments(self._problem, self._data)

    def measure(self, preparation: Any) -> None:
        """Return None: moments of features are computed from the samples."""

    def mean_loss(self, runner: Any) -> float:
        """Return the mean of the losses of all samples."""
        return runner.mean_loss(self._data.X, self._data.y, self._data.sample_weight)

    def passes(
        self, prepare: Callable[[Data], Data], data: Data, seed: int | None, version: int
    ) -> PassesInMemory:
        """Return the passes of a training on the prepared samples."""
        return PassesInMemory(data, seed, 0, version)


class SourceSamples(LocalSamples):
    """All samples of a source."""

    def __init__(self, source: Source, whole: SourceTotals, batch_size: int, shuffle_buffer: int):
        self.whole = whole
        self.n_samples = whole.n_rows  # number of samples of a pass
        self.size = chunk_size(whole.n_rows, batch_size, shuffle_buffer)  # number of samples of a chunk
        # Mean and standard deviation of encoded labels, once they are measured.
        self.label_moments: tuple[np.ndarray, float] | None = None
        self._source = source
        # The reading thread begins a chunk when the chunk before the last one is released.
        self._pool = ArrayPool()

    @property
    def summary(self) -> bytes:
        """Text of the counts, for the checksum of the samples."""
        whole = self.whole
        labels = None if whole.labels is None else whole.labels.tolist()
        return repr((whole.n_rows, whole.largest, whole.weights.tolist(), labels)).encode()

    def texts(self) -> dict[str, str]:
        """Return the fingerprint of all samples; only that of the first ones is known without a pass."""
        return {"source": self.whole.text()}

    @property
    def is_one_chunk(self) -> bool:
        """Whether all samples fit in the buffer: they are read once, and trained on in memory."""
        return self.size == self.n_samples

    def first(self) -> SampleBlock:
        """Return the samples of the first chunk, not shuffled."""
        with closing(cut(self._source.blocks(), self.size)) as chunks:
            return next(chunks)

    def cut(self, blocks: Iterator[SampleBlock], skipped: int = 0) -> Iterator[SampleBlock]:
        """Yield the samples of blocks in chunks, as a matrix if the graph takes one."""
        return cut(blocks, self.size, self._matrix_dtype, skipped, self._pool)

    def set_problem(self, problem: Problem, features: InputFeatures) -> None:
        """Set the problem, by which samples are read and labels are encoded."""
        self._reader = SourceReader(problem, features, self.whole, self._source.names is not None)
        self._matrix_dtype = self._reader.matrix_dtype

    def read(self, block: SampleBlock) -> Data:
        """Validate samples, and convert them to the inputs of the graph."""
        return self._reader.read(block)

    def _chunks(self) -> Generator[Data, None, None]:
        """Yield all samples in chunks, not shuffled."""
        return prefetched(lambda: map(self.read, self.cut(self._source.blocks())))

    def measure(self, preparation: Any) -> dict[str, Moments]:
        """Store the moments of labels, and return those of the features that ``preparation`` returns."""
        moments: dict[str, Moments] = {}
        labels = Moments()
        for data in self._chunks():
            add_moments(moments, preparation.features(data), data)
            labels.add(flat_labels(data), data.weight_per_sample)
        self.label_moments = score_moments(self._reader.problem, *labels.mean_and_variance)
        return moments

    def mean_loss(self, runner: Any) -> float:
        """Return the mean of the losses of all samples."""
        total = weight = 0.0
        for data in self._chunks():
            share = data.total_weight
            if share > 0:
                total += share * runner.mean_loss(data.X, data.y, data.sample_weight)
                weight += share
        return total / weight

    def passes(
        self, prepare: Callable[[Data], Data], data: Data, seed: int | None, version: int
    ) -> SourcePasses:
        """Return the passes of a training; ``data`` are the first samples, prepared."""
        return SourcePasses(self, prepare, seed, version)

    def blocks_after(
        self, epoch: int, seed: int | None, skipped: int, version: int
    ) -> tuple[Iterator[SampleBlock], int]:
        """Return the remaining blocks of a pass, and the number of their samples to skip."""
        sizes = self._source.sizes
        if sizes is None:
            return self._source.blocks(), skipped
        numbers = epoch_order(len(sizes), seed, epoch, BLOCKS, version).tolist()
        numbers, skipped = whole_blocks(numbers, sizes, skipped)
        return self._source.blocks(numbers), skipped


class SourcePasses:
    """Passes over a source, with a function that prepares chunks; a seed of None does not shuffle."""

    def __init__(
        self, samples: SourceSamples, prepare: Callable[[Data], Data], seed: int | None, version: int
    ):
        self.n_samples = samples.n_samples
        self._samples, self._prepare, self._seed, self._version = samples, prepare, seed, version

    def chunks(self, epoch: int, n_skipped: int) -> Generator[Chunk, None, None]:
        """Yield the chunks of a pass after ``n_skipped`` samples, validated in the training thread."""
        samples = self._samples
        number, done = divmod(n_skipped, samples.size)
        blocks, skipped = samples.blocks_after(epoch, self._seed, number * samples.size, self._version)
        with closing(prefetched(lambda: samples.cut(blocks, skipped))) as chunks:
            for block in chunks:
                if len(block) != min(samples.size, self.n_samples - number * samples.size):
                    self._raise_changed(number * samples.size + len(block))
                order = epoch_order(len(block), self._seed, epoch, number, self._version)
                yield self._prepare(samples.read(block)), order[done:]
                number, done = number + 1, 0
        if number * samples.size < self.n_samples:
            self._raise_changed(number * samples.size)

    def _raise_changed(self, n_samples: int) -> None:
        """Raise an error for a source whose number of samples has changed."""
        raise SourceError(
            f"The source returned {n_samples} samples or more in this pass, and {self.n_samples} when they "
            "were counted: it must return the same samples in the same order in each pass."
        )
