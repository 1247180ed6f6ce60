"""Fit from a source: a counting pass, a start with the first samples, and training passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from ..data.chunks import cut
from ..data.opening import open_source
from ..data.sample_blocks import SampleBlock
from ..data.samples import Data
from ..data.source_errors import first_fault
from ..data.source_features import SourceFeatures
from ..data.sources import Source
from ..data.tables import Table
from ..exceptions import PluginError, SourceError
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.initial_fit import is_fitted
from ..problem.configuration import Configuration
from ..problem.input_validation import InputFeatures, read_before_fit, read_samples
from ..problem.objective_weights import objective_weights
from ..problem.problem import Problem
from ..problem.samples import Samples
from ..targets.encoding import check_labels
from ..targets.given_classes import PartialFitClasses
from ..targets.label_errors import check_validation_classes
from ..training.state import TrainingState
from .fitted_model import FittedModel
from .source_checks import UniformSource
from .source_counts import Counts, SourceTotals, count
from .source_samples import SourceSamples
from .start import Start, new_start
from .trainer import FitCall, Trainer, named_classes
from .validation import Validation

__all__ = ["SourceRequest", "expected_of", "fit_source", "in_memory", "labels_are_arrays"]

#: Rows of the first chunk that are kept, to test graphs and for messages.
KEPT = 10_000


@dataclass(frozen=True)
class SourceRequest:
    """Arguments of ``fit_stream``."""

    source: Any
    labels: tuple[Any, Any, Any]  # labels, weights and features
    held_out: Any  # validation samples
    held_out_labels: tuple[Any, Any, Any]
    classes: Any
    shuffle_buffer: int  # number of samples in memory
    resumed: TrainingState | None  # state of a training to resume


def fit_source(trainer: Trainer, request: SourceRequest) -> FittedModel:
    """Return a model trained on a source."""
    _check(trainer, request)
    name, held_out = trainer.configuration.name, None
    source: Source = UniformSource(open_source(request.source, *request.labels), name)
    if request.held_out is not None:
        with _errors_of_validation():
            held_out = UniformSource(open_source(request.held_out, *request.held_out_labels), name)
    try:
        call = trainer.new_call(request.resumed)
        known = {} if call.resumed is None else call.resumed.fingerprint.counts
        samples = _samples(trainer, source, request.shuffle_buffer, known.get("source"))
        counts = {"source": Counts(samples.whole, source.stamp)}
        start = _begin(trainer, call, samples, request.classes)
        validation = None
        if held_out is not None:
            with _errors_of_validation():
                whole = _count(trainer, held_out, known.get("source_val"), False)
                validation = _validation(trainer, start, held_out, whole.n_rows, samples.size)
            counts["source_val"] = Counts(whole, held_out.stamp)
        configuration = trainer.configuration
        settings = configuration.loop_settings(configuration.stopping.max_iter)
        if validation is not None and trainer.is_automatic and not configuration.stopping.early_stopping:
            settings = replace(settings, watch="validation_loss", validation_every=1, tol=0.0)
        given = (configuration, start, settings, validation)
        return call.train(*given, shuffle_buffer=samples.size, counts=counts)
    finally:
        source.close()
        if held_out is not None:
            held_out.close()


def _check(trainer: Trainer, request: SourceRequest) -> None:
    configuration = trainer.configuration
    configuration.check_fit()
    rate, buffer = configuration.updates.learning_rate, request.shuffle_buffer
    if configuration.updates.is_solver:
        raise PluginError(
            f"{type(rate).__name__} trains on all rows at once: use fit, or another learning rate."
        )
    if not isinstance(buffer, Integral) or isinstance(buffer, bool) or buffer < 1:
        raise ValueError(f"shuffle_buffer={buffer!r} must be a number of rows, at least 1.")
    if configuration.stopping.early_stopping and request.held_out is None:
        raise ValueError(
            "early_stopping requires validation rows, and a source cannot be split: pass source_val, or set "
            "early_stopping=False."
        )


def _samples(trainer: Trainer, source: Source, shuffle_buffer: int, known: Counts | None) -> SourceSamples:
    configuration = trainer.configuration
    whole = _count(trainer, source, known, configuration.estimator_type == "classifier")
    return SourceSamples(source, whole, configuration.updates.batch_size, int(shuffle_buffer))


def _count(trainer: Trainer, source: Source, known: Counts | None, is_classifier: bool) -> SourceTotals:
    """Return the counts of a source, without a pass if those of the same files are known."""
    if known is not None and known.stamp is not None and known.stamp == source.stamp:
        return known.whole
    configuration = trainer.configuration
    is_onnx, verbose = is_onnx_source(configuration.source), bool(configuration.verbose)
    first = next(iter(source.blocks()), None) if is_onnx and is_classifier else None
    flat_labels = first is not None and labels_are_arrays(configuration, first)
    return count(source, is_classifier, configuration.name, verbose, is_onnx, flat_labels)


def labels_are_arrays(configuration: Configuration, first: SampleBlock) -> bool:
    """Return whether the labels of a sample of an ONNX file are those of pixels or time steps."""
    if first.y is None or np.ndim(first.y) < 2 or np.shape(first.y)[1:] == (1,):
        return False
    rows = in_memory(configuration, first)
    scores = Problem.of(configuration, rows.X, rows.y).trainable.scores
    return scores is not None and scores.positions is not None


def _begin(trainer: Trainer, call: FitCall, samples: SourceSamples, classes: Any) -> Start:
    """Return the start of a training on the first samples, with the counts of all samples."""
    configuration = trainer.configuration
    rows = samples.first()
    first = in_memory(configuration, rows)
    expected = expected_of(classes, samples.whole, first.y, configuration)
    if call.task is not None:
        call.task.begin(first)
    last = trainer.last if configuration.warm_start and call.resumed is None else None
    random_state, seed = call.random_state, call.seed
    try:
        start = new_start(configuration, first, random_state, seed, last, expected, whole=samples.whole)
    except (ValueError, TypeError) as error:
        raise _fault_of_start(configuration, rows, error) or error from error
    samples.set_problem(start.problem, start.features)
    return _of_source(start, samples)


def _fault_of_start(configuration: Configuration, rows: SampleBlock, error: Exception) -> Exception | None:
    """Return the error of a start with the position of the samples that cause it; None if none do."""
    source, dtype = configuration.source, np.dtype(configuration.conversion.dtype)
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

    return first_fault(rows, check)


def _of_source(start: Start, samples: SourceSamples) -> Start:
    """Return a start on all samples of a source; unless the first chunk is all, most of it is released."""
    if samples.is_one_chunk:
        return start
    few = start.data.take(np.arange(min(len(start.data), KEPT)))
    return replace(start, data=few, source=samples)


def in_memory(configuration: Configuration, rows: SampleBlock) -> Samples:
    """Return rows of a source as samples."""
    dtype = np.dtype(configuration.conversion.dtype)
    X = rows.X.frame(dtype) if isinstance(rows.X, Table) else rows.X
    return Samples(X, rows.y, rows.sample_weight)


def expected_of(
    classes: Any, whole: SourceTotals, y: Any, configuration: Configuration
) -> PartialFitClasses | None:
    """Return the classes of the parameter ``classes``, or all that occur if the first samples lack some."""
    if classes is not None:
        expected = named_classes(configuration, classes, y)
        if expected is not None and whole.labels is not None:
            expected.checked_classes(whole.labels)
        return expected
    columns = whole.classes
    if is_onnx_source(configuration.source):
        return None  # its classes are in the file, or the indices of its scores
    if columns is None or configuration.estimator_type != "classifier":
        return None
    own = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    first = own.reshape(len(own), -1).T
    if all(len(np.unique(part)) == len(known) for part, known in zip(first, columns, strict=True)):
        return None
    given = columns[0] if len(columns) == 1 else columns
    return PartialFitClasses(given, columns)


@contextmanager
def _errors_of_validation() -> Iterator[None]:
    """Name the argument in errors of the validation source."""
    try:
        yield
    except SourceError as error:
        raise SourceError(f"source_val: {error}") from error


def _validation(trainer: Trainer, start: Start, source: Source, n_rows: int, size: int) -> Validation:
    """Return the validation on another source, which is read into memory if it is small."""
    configuration, problem = trainer.configuration, start.problem
    if problem.needs_labels and next(source.blocks(features=False)).y is None:
        raise SourceError("It has no labels: pass y_val, or y with the name of their column.")
    if n_rows <= size:
        return _validation_in_memory(trainer, start, SampleBlock.join(list(source.blocks())))
    parts = [(part.y, part.sample_weight) for part in cut(source.blocks(features=False), size)]
    labels = SampleBlock.join([SampleBlock(None, *part) for part in parts])
    check_validation_classes(labels.y, problem.targets.classes)
    X = SourceFeatures(source, n_rows, size)
    samples = Samples(X, labels.y, labels.sample_weight).with_checked_weights()
    y = problem.encoder.encode(samples.y, n_rows)
    weights = objective_weights(problem, samples.y, samples.sample_weight, n_rows)
    data = Data(read_samples(problem, X, start.features), y, weights)
    return Validation(configuration, problem, start.features, samples, data, trainer.view.with_model)


def _validation_in_memory(trainer: Trainer, start: Start, rows: SampleBlock) -> Validation:
    """Return the validation on samples in memory; errors of features name the batch."""
    configuration = trainer.configuration

    def check(part: SampleBlock) -> None:
        read_samples(start.problem, in_memory(configuration, part).X, start.features)

    try:
        return trainer.validation(start, in_memory(configuration, rows))
    except (ValueError, TypeError) as error:
        raise first_fault(rows, check) or error from error
