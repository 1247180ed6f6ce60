"""Samples of a source: a counting pass, a start on the first samples, and training passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from ..data.chunks import cut
from ..data.opening import open_source
from ..data.sample_blocks import SampleBlock
from ..data.source_errors import first_fault
from ..data.source_features import SourceFeatures
from ..data.sources import Source
from ..data.tables import Table
from ..exceptions import ObjectiveWarning, PluginError, SourceError, warn_user
from ..models import fitted_part
from ..models.capabilities import Bags, BoostedStages, CrossFitted, ShiftedScores, capability_of
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.initial_fit import is_fitted
from ..problem.automatic import automatic_batch_size
from ..problem.configuration import Configuration
from ..problem.input_validation import InputFeatures, read_before_fit, read_samples
from ..problem.problem import Problem
from ..problem.samples import Samples
from ..targets.encoding import check_labels
from .given import Beginning, Call, Given, InMemory
from .sources.checks import UniformSource
from .sources.counts import Counts, SourceTotals, count
from .sources.samples import SourceSamples
from .start import Start, new_start
from .validation import Validation

__all__ = ["FromSource", "in_memory", "labels_are_arrays"]

#: Samples of the first chunk that are kept, to test graphs and for messages.
KEPT = 10_000


#: Warning of models whose values another loss moves further than gradient steps.
FEW_MOVES = (
    "fit_stream trains {0} by gradient steps, also on the samples that it was fitted on, and another loss "
    "than its own moves its values too little: quantiles cover too few labels. A source that fits into the "
    "buffer is trained as by fit: pass shuffle_buffer={2} instead of {1}, or fit on fewer samples."
)


class FromSource(Given):
    """Samples of a source, which is counted first; ``labels`` are labels, weights and features."""

    def __init__(
        self,
        source: Any,
        labels: tuple[Any, Any, Any],
        held_out: Any,
        held_out_labels: tuple[Any, Any, Any],
        shuffle_buffer: int,
    ):
        super().__init__()
        self._given, self._labels, self.shuffle_buffer = source, labels, shuffle_buffer
        self._held_out, self._held_out_labels = held_out, held_out_labels
        self.has_validation = held_out is not None
        self._sources: list[Source] = []

    def check(self, configuration: Configuration) -> None:
        """Raise an error for a solver, and for early stopping without validation samples; open the source."""
        rate, buffer, name = configuration.updates.learning_rate, self.shuffle_buffer, configuration.name
        if configuration.updates.is_solver:
            raise PluginError(
                f"{type(rate).__name__} trains on all samples at once: use fit, or another learning rate."
            )
        if not isinstance(buffer, Integral) or isinstance(buffer, bool) or buffer < 1:
            raise ValueError(f"shuffle_buffer={buffer!r} must be a number of samples, at least 1.")
        if configuration.stopping.early_stopping and self._held_out is None:
            raise ValueError(
                "early_stopping requires validation samples; a source cannot be split: pass source_val, or "
                "set early_stopping=False."
            )
        self._sources.append(UniformSource(open_source(self._given, *self._labels), name))
        if self._held_out is not None:
            with _errors_of_validation():
                found = open_source(self._held_out, *self._held_out_labels)
                self._sources.append(UniformSource(found, name))

    def open(self, call: Call) -> Samples:
        """Count the samples, unless the counts of the same files are known; return the first ones."""
        own, source = call.beginning.configuration, self._sources[0]
        self._known = {} if call.resumed is None else call.resumed.fingerprint.counts
        assert self.shuffle_buffer is not None
        whole = _count(own, source, self._known.get("source"), own.estimator_type == "classifier")
        size = own.updates.batch_size or automatic_batch_size(own, whole.n_rows)
        self._samples = SourceSamples(source, whole, size, int(self.shuffle_buffer))
        self.shuffle_buffer = self._samples.size
        self.counts["source"] = Counts(whole, source.stamp)
        self._first = self._samples.first()
        self._first_samples = in_memory(own, self._first)
        return self._first_samples

    def opened(self, call: Call) -> Given:
        """Return samples in memory if the buffer has all, and the model reproduces those of its fit."""
        own, held_out = call.beginning.configuration, None
        if not self._samples.is_one_chunk or not _reproduces_samples(own.source):
            return self
        if self._held_out is not None:
            with _errors_of_validation():
                held_out = in_memory(own, SampleBlock.join(list(self._sources[1].blocks())))
        given = _InBuffer(self._first_samples, held_out, self._first)
        given.counts, given.shuffle_buffer = self.counts, self.shuffle_buffer
        return given

    def start(self, beginning: Beginning) -> Start:
        """Return the start on the first samples, with the counts of all samples."""
        try:
            start = beginning.start(self._first_samples, self._samples.whole)
        except (ValueError, TypeError) as error:
            raise _fault_of_start(beginning.configuration, self._first, error) or error from error
        if not start.problem.has_default_loss and _reproduces_samples(beginning.configuration.source):
            name, n_samples = type(fitted_part(start.problem.source)).__name__, self._samples.whole.n_rows
            warn_user(FEW_MOVES.format(name, self.shuffle_buffer, n_samples), ObjectiveWarning, once=True)
        del self._first, self._first_samples
        self._samples.set_problem(start.problem, start.features)
        if self._samples.is_one_chunk:
            return start
        few = start.data.take(np.arange(min(len(start.data), KEPT)))  # the others are released
        return replace(start, data=few, source=self._samples)

    def validated(self, call: Call, start: Start, adapts: bool) -> tuple[Start, Validation | None]:
        """Return start and validation."""
        if self._held_out is None:
            return start, None
        own, source = call.beginning.configuration, self._sources[1]
        with _errors_of_validation():
            whole = _count(own, source, self._known.get("source_val"), False)
            validation = _validation(call, start, source, whole.n_rows, self._samples.size)
        self.counts["source_val"] = Counts(whole, source.stamp)
        return start, validation

    def close(self) -> None:
        """Close the sources."""
        for source in self._sources:
            source.close()


class _InBuffer(InMemory):
    """All samples of a source in memory; errors name the batch."""

    def __init__(self, samples: Samples, held_out: Samples | None, block: SampleBlock):
        super().__init__(samples, held_out)
        self._block = block

    def start(self, beginning: Beginning) -> Start:
        """Return the start of the training."""
        try:
            return super().start(beginning)
        except (ValueError, TypeError) as error:
            raise _fault_of_start(beginning.configuration, self._block, error) or error from error


def _reproduces_samples(source: Any) -> bool:
    """Return whether samples of the fit prove nothing about a model: fit trains it in other ways."""
    kinds = (Bags, BoostedStages, CrossFitted, ShiftedScores)
    if is_onnx_source(source):
        return False
    return any(capability_of(fitted_part(source), kind) is not None for kind in kinds)


def _count(
    configuration: Configuration, source: Source, known: Counts | None, is_classifier: bool
) -> SourceTotals:
    """Return the counts of a source, without a pass if those of the same files are known."""
    if known is not None and known.stamp is not None and known.stamp == source.stamp:
        return known.whole
    is_onnx, verbose = is_onnx_source(configuration.source), bool(configuration.verbose)
    first = next(iter(source.blocks()), None) if is_onnx and is_classifier else None
    flat_labels = first is not None and labels_are_arrays(configuration, first)
    return count(source, is_classifier, configuration.name, verbose, is_onnx, flat_labels)


def labels_are_arrays(configuration: Configuration, first: SampleBlock) -> bool:
    """Return whether the labels of a sample of an ONNX file are those of pixels or time steps."""
    if first.y is None or np.ndim(first.y) < 2 or np.shape(first.y)[1:] == (1,):
        return False
    samples = in_memory(configuration, first)
    scores = Problem.of(configuration, samples.X, samples.y).trainable.scores
    return scores is not None and scores.positions is not None


def _fault_of_start(configuration: Configuration, block: SampleBlock, error: Exception) -> Exception | None:
    """Return the error of a start with the position of the samples that cause it; None if none do."""
    source, dtype = configuration.source, configuration.conversion.float_dtype
    given = is_onnx_source(source) or is_fitted(source)

    def check(part: SampleBlock) -> None:
        samples = in_memory(configuration, part)
        check_labels(samples.y)
        if not given:
            read_before_fit(samples.X, InputFeatures.of(samples.X, configuration.name), source, dtype)
            return
        try:
            new_start(configuration, samples, np.random.RandomState(0), 0)
        except (ValueError, TypeError) as found:
            if str(found) == str(error):
                raise

    return first_fault(block, check)


def in_memory(configuration: Configuration, block: SampleBlock) -> Samples:
    """Return a block of a source as samples."""
    dtype = configuration.conversion.float_dtype
    X = block.X.frame(dtype) if isinstance(block.X, Table) else block.X
    return Samples(X, block.y, block.sample_weight)


@contextmanager
def _errors_of_validation() -> Iterator[None]:
    """Name the argument in errors of the validation source."""
    try:
        yield
    except SourceError as error:
        raise SourceError(f"source_val: {error}") from error


def _validation(call: Call, start: Start, source: Source, n_samples: int, size: int) -> Validation:
    """Return the validation on another source, which is read into memory if it is small.

    Errors of samples in memory name the batch.
    """
    configuration, problem, block = call.beginning.configuration, start.problem, None
    if problem.needs_labels and next(source.blocks(features=False)).y is None:
        raise SourceError("It has no labels: pass y_val, or y with the name of their column.")
    if n_samples <= size:
        block = SampleBlock.join(list(source.blocks()))
        samples = in_memory(configuration, block)
    else:
        parts = [(part.y, part.sample_weight) for part in cut(source.blocks(features=False), size)]
        labels = SampleBlock.join([SampleBlock(None, *part) for part in parts])
        samples = Samples(SourceFeatures(source, n_samples, size), labels.y, labels.sample_weight)

    def check(part: SampleBlock) -> None:
        read_samples(problem, in_memory(configuration, part).X, start.features)

    try:
        return Validation.of(configuration, start, samples, call.view.with_model)
    except (ValueError, TypeError) as error:
        if block is None:
            raise
        raise first_fault(block, check) or error from error
