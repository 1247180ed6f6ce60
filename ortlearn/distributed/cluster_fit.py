"""Fit on a cluster: count the samples, initialise on the first shard, and train in rounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..data.sample_blocks import SampleBlock
from ..exceptions import FewUpdatesWarning, warn_user
from ..fitting.fitted_model import FittedModel
from ..fitting.run import train
from ..fitting.source_counts import SourceTotals
from ..fitting.source_fitting import expected_of, in_memory, labels_are_arrays
from ..fitting.start import Start, new_start, next_start
from ..fitting.trainer import Trainer, draw_seed, named_classes
from ..onnx_files.loading import is_onnx_source
from ..problem.configuration import Configuration, Runtime
from ..runtime.errors import runtime_errors
from ..training.graphs.task import TrainingTask
from ..training.interrupts import Interrupted, ReadingFailed
from ..training.solvers.full_batch import FullBatchStep
from ..training.state import TrainingState
from ..training.steps.base_step import BaseStep
from . import tasks
from .cluster import Cluster
from .exact import ClusterFullBatchStep, GradientRounds
from .partitions import Partitions, open_partitions
from .rounds import ClusterStep, Interval, Rounds
from .shards import ShardSamples, count_partitions
from .validation import validation_on

__all__ = ["Request", "fit_on_cluster", "partial_fit_on_cluster"]

#: Samples of the first shard that the driver keeps to test graphs, and for messages.
KEPT = 64
#: Number of updates per shard below which the loss may be higher (docs/explanation/scaling.md).
FEW_UPDATES = 500


@dataclass(frozen=True)
class Request:
    """Arguments of ``fit`` or ``partial_fit``; those held out are X, y and weights for validation."""

    cluster: Cluster
    X: Any
    y: Any
    sample_weight: Any
    held_out: tuple[Any, Any, Any]
    features: Any
    classes: Any
    interval: Interval


@dataclass(frozen=True)
class _ClusterRuntime(Runtime):
    """Runtime of the driver, whose steps take the results of rounds on the cluster."""

    training: _ShardSource | None = None

    def new_step(self, task: TrainingTask) -> BaseStep | FullBatchStep:
        """Return the training step of a task."""
        assert self.training is not None
        return self.training.new_step(task)


class _ShardSource(ShardSamples):
    """Shards as the sample source of a training."""

    batch_size: int
    interval: Interval
    max_iter: int
    _step: Any = None

    def new_step(self, task: TrainingTask) -> BaseStep | FullBatchStep:
        """Return a step of the driver."""
        full_batch = task.update.learning_rate.full_batch
        self._step = ClusterFullBatchStep(self, task) if full_batch else ClusterStep(self, task)
        return self._step

    def passes(self, preparation: Any, seed: int | None, version: int) -> Rounds | GradientRounds | None:
        """Return the rounds of a training; None for a solver, which controls its evaluations itself."""
        shards = self.prepare(preparation)
        if isinstance(self._step, ClusterFullBatchStep):
            self._step.set_shards(shards)
            return None
        if self.batch_size >= self.n_samples and len(self.sizes) > 1:
            return GradientRounds(self, self._step, shards)
        program = tasks.Program(self._step.task, self.runtime, self.batch_size, seed, version)
        return Rounds(self, self._step, shards, program, self.interval, self.max_iter)

    def warn_of_few_updates(self, is_solver: bool, rate_is_automatic: bool) -> None:
        """Warn if shards make few updates of the weights, but one machine would make enough."""
        counts, size = [-(-rows // self.batch_size) for rows in self.sizes], self.batch_size
        most, n_shards = max(counts) * self.max_iter, len(counts)
        exact = is_solver or size >= self.n_samples
        if exact or n_shards == 1 or not most < FEW_UPDATES <= sum(counts) * self.max_iter:
            return
        advice = [f"set batch_size={max(1, size // n_shards)}"] if size > 1 else []
        advice += [] if rate_is_automatic else [f"multiply the learning rate by {np.sqrt(n_shards):.2g}"]
        warn_user(
            f"Each of {n_shards} shards updates the weights {most:,} times in {self.max_iter:,} passes, one "
            f"machine {sum(counts) * self.max_iter:,} times: the final loss may be higher. To compensate, "
            f"{', '.join([*advice, 'or increase max_iter']) if advice else 'increase max_iter'}.",
            FewUpdatesWarning,
        )


def fit_on_cluster(trainer: Trainer, request: Request, resumed: TrainingState | None) -> FittedModel:
    """Train on shards and return the model."""
    configuration = trainer.configuration
    configuration.check_fit()
    if configuration.stopping.early_stopping and request.held_out[0] is None:
        raise ValueError(
            "early_stopping needs validation data, and shards are not split: pass X_val and y_val, or set "
            "early_stopping=False."
        )
    shards = _Shards.of(configuration, request)
    call = trainer.new_call(resumed)
    if call.task is not None:
        call.task.begin(request)  # type: ignore[arg-type]
    last = trainer.last if configuration.warm_start and call.resumed is None else None
    start = shards.on_first(_begin_on, call.random_state, call.seed, last, request.classes, shards.whole)
    settings = configuration.loop_settings(configuration.stopping.max_iter)
    training = shards.training(start, settings.max_iter)
    training.warn_of_few_updates(start.problem.updates.is_solver, trainer.is_automatic)
    start = replace(start, source=training)
    validation = validation_on(trainer, start, request)
    if validation is not None and trainer.is_automatic and not configuration.stopping.early_stopping:
        settings = replace(settings, watch="validation_loss", validation_every=1, tol=0.0)
    settings = replace(settings, batch_size=1, columns=training.columns)
    runtime = _with_runtime(configuration, training)
    return _without_sessions(lambda: call.train(runtime, start, settings, validation))


def partial_fit_on_cluster(trainer: Trainer, request: Request, total_weight: float | None) -> FittedModel:
    """Train for one more epoch and return the model."""
    configuration = trainer.configuration
    configuration.check_partial_fit(request.held_out[0] is not None)
    shards, last = _Shards.of(configuration, request), trainer.last
    task = trainer.view.task("partial_fit", 1)
    if task is not None:
        task.begin(request)  # type: ignore[arg-type]
    if last is None:
        random_state = check_random_state(configuration.random_state)
        seed = draw_seed(random_state)
        arguments = (random_state, seed, None, request.classes, shards.whole, True, total_weight)
        start = shards.on_first(_begin_on, *arguments)
    else:
        start = shards.on_first(_resume_on, last, request.classes, shards.whole, total_weight)
    settings = configuration.loop_settings(start.state.n_iter + 1, trainer.owner)
    training = shards.training(start, settings.max_iter)
    start = replace(start, source=training)
    settings = replace(settings, batch_size=1, columns=training.columns)
    validation = validation_on(trainer, start, request)
    runtime = _with_runtime(configuration, training)
    return _without_sessions(lambda: train(runtime, start, settings, validation, task))


@dataclass(frozen=True)
class _Shards:
    """Non-empty partitions, their counts, and the number of the first one with a positive weight."""

    configuration: Configuration
    request: Request
    partitions: Partitions
    sizes: list[int]
    whole: SourceTotals
    first: int

    @classmethod
    def of(cls, configuration: Configuration, request: Request) -> _Shards:
        """Open the collections of a request and count their samples."""
        cluster, one_by_one = request.cluster, False
        found = open_partitions(cluster, request.X, request.y, request.sample_weight, request.features)
        is_classifier = configuration.estimator_type == "classifier"
        of_file = is_onnx_source(configuration.source)
        if of_file and is_classifier:
            future = cluster.submit(labels_are_arrays, configuration, found.rows[0])
            one_by_one = cluster.gather([future], names=found.names)[0]
        partitions, wholes = count_partitions(cluster, found, is_classifier, of_file, one_by_one)
        sizes, whole = [part.n_rows for part in wholes], SourceTotals.of_parts(wholes)
        first = next(number for number, part in enumerate(wholes) if part.total > 0)
        return cls(configuration, request, partitions, sizes, whole, first)

    def on_first(self, task: Callable[..., tuple[Start, list]], *arguments: Any) -> Start:
        """Return the result of a task on the first shard with a positive weight, and repeat its warnings."""
        cluster, rows = self.request.cluster, self.partitions.rows[self.first]
        future = cluster.submit(_call, task, rows, cluster.send((self.configuration, *arguments)))
        start, found = cluster.gather([future], names=[self.partitions.names[self.first]])[0]
        for text, category in found:
            warn_user(text, category)
        return start

    def training(self, start: Start, max_iter: int) -> _ShardSource:
        """Return the sample source of a training."""
        arguments = (self.request.cluster, self.partitions, self.sizes, self.whole)
        training = _ShardSource(*arguments, start.problem, start.features, self.configuration.runtime)
        training.batch_size = self.configuration.updates.batch_size
        training.interval, training.max_iter = self.request.interval, max_iter
        return training


def _call(task: Callable, rows: SampleBlock, arguments: tuple) -> Any:
    return task(rows, *arguments)


def _begin_on(
    rows: SampleBlock,
    configuration: Configuration,
    random_state: np.random.RandomState,
    seed: int,
    last: FittedModel | None,
    classes: Any,
    whole: SourceTotals,
    stream: bool = False,
    total_weight: float | None = None,
) -> tuple[Start, list]:
    """Return the start of a training, from the samples of the first shard, and its warnings."""
    samples = in_memory(configuration, rows)
    with _recorded() as found:
        expected = expected_of(classes, whole, samples.y, configuration)
        arguments = (expected, stream, total_weight, whole, True)
        start = new_start(configuration, samples, random_state, seed, last, *arguments)
    return _with_few_samples(start), _user_warnings(found)


def _resume_on(
    rows: SampleBlock,
    configuration: Configuration,
    last: FittedModel,
    classes: Any,
    whole: SourceTotals,
    total_weight: float | None,
) -> tuple[Start, list]:
    """Return the start of a later call of ``partial_fit``, and its warnings."""
    samples = in_memory(configuration, rows)
    with _recorded() as found:
        start = next_start(configuration, samples, last, total_weight, whole)
        expected = named_classes(configuration, classes, samples.y)
        if expected is not None:
            expected.check_known(start.problem.targets.classes, "the first call")
    return _with_few_samples(start), _user_warnings(found)


@contextmanager
def _recorded() -> Iterator[list]:
    """Record warnings on a worker, where the user does not see them."""
    with runtime_errors(), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


def _user_warnings(found: list) -> list[tuple[str, type[Warning]]]:
    return [(str(item.message), item.category) for item in found if issubclass(item.category, UserWarning)]


def _with_few_samples(start: Start) -> Start:
    """Return a start with its first samples only, to be sent to the driver."""
    return replace(start, data=start.data.take(np.arange(min(len(start.data), KEPT))))


def _with_runtime(configuration: Configuration, training: _ShardSource) -> Configuration:
    own = configuration.runtime
    return replace(configuration, runtime=_ClusterRuntime(own.device, own.n_jobs, own.step_class, training))


def _without_sessions(run: Callable[[], FittedModel]) -> FittedModel:
    """Return a trained model without references to the cluster, also after an interrupt."""
    try:
        return replace(run(), step=None, inference=None)
    except (Interrupted, ReadingFailed) as error:
        if error.model is not None:
            error.model = replace(error.model, step=None, inference=None)
        raise
