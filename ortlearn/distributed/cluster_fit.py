"""Samples on a cluster: counts, a start on the first shard, and training in rounds."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.sample_blocks import SampleBlock
from ..data.samples import Data
from ..exceptions import FewUpdatesWarning, warn_user
from ..fitting.from_source import in_memory, labels_are_arrays
from ..fitting.given import Beginning, Call, Given
from ..fitting.sources.counts import SourceTotals
from ..fitting.start import Start
from ..onnx_files.loading import is_onnx_source
from ..problem.configuration import Configuration, Runtime
from ..runtime.errors import runtime_errors
from ..training.graphs.task import TrainingTask
from ..training.settings import LoopSettings
from . import tasks
from .cluster import Cluster
from .exact import GradientRounds
from .partitions import open_partitions
from .rounds import ClusterStep, Interval, Rounds
from .shards import ShardSamples, count_partitions
from .validation import validation_on

__all__ = ["OnCluster"]

#: Samples of the first shard that the driver keeps to test graphs, and for messages.
KEPT = 64
#: Number of updates per shard below which the loss may be higher (docs/explanation/scaling.md).
FEW_UPDATES = 500


class _ShardSource(ShardSamples):
    """Shards as the sample source of a training."""

    is_remote = True
    batch_size: int
    interval: Interval
    max_iter: int
    _step: ClusterStep

    def new_step(self, runtime: Runtime, task: TrainingTask, preparation: Any) -> ClusterStep:
        """Return a step of the driver."""
        self.prepare(preparation)
        self._step = ClusterStep(self, task)
        return self._step

    def passes(self, preparation: Any, data: Data, seed: int | None, version: int) -> Rounds | GradientRounds:
        """Return the rounds of a training."""
        if self.batch_size >= self.n_samples and len(self.sizes) > 1:
            return GradientRounds(self, self._step)
        program = tasks.Program(self._step.task, self.runtime, self.batch_size, seed, version)
        return Rounds(self, self._step, program, self.interval, self.max_iter)

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


class OnCluster(Given):
    """Samples in the partitions of a cluster; those held out are X, y and weights for validation."""

    def __init__(
        self,
        cluster: Cluster,
        collections: tuple[Any, Any, Any, Any],
        held_out: tuple[Any, Any, Any],
        interval: Interval,
    ):
        super().__init__()
        self.cluster, self.held_out, self.interval = cluster, held_out, interval
        self.X, self.y, self.sample_weight, self.features = collections
        self.has_validation = held_out[0] is not None

    def check(self, configuration: Configuration) -> None:
        """Raise an error for early stopping without validation samples."""
        if configuration.stopping.early_stopping and not self.has_validation:
            raise ValueError(
                "early_stopping needs validation data, and shards are not split: pass X_val and y_val, or "
                "set early_stopping=False."
            )

    def open(self, call: Call) -> Any:
        """Count the samples of the partitions, without empty ones; return the collections."""
        cluster, own, one_by_one = self.cluster, call.beginning.configuration, False
        found = open_partitions(cluster, self.X, self.y, self.sample_weight, self.features)
        is_classifier, of_file = own.estimator_type == "classifier", is_onnx_source(own.source)
        if of_file and is_classifier:
            future = cluster.submit(labels_are_arrays, own, found.blocks[0])
            one_by_one = cluster.gather([future], names=found.names)[0]
        self._partitions, wholes = count_partitions(cluster, found, is_classifier, of_file, one_by_one)
        self._sizes, self._whole = [part.n_rows for part in wholes], SourceTotals.of_parts(wholes)
        self._first = next(number for number, part in enumerate(wholes) if part.total > 0)
        return self

    def start(self, beginning: Beginning) -> Start:
        """Return the start on the first shard with a positive weight, and repeat its warnings."""
        cluster, block, own = self.cluster, self._partitions.blocks[self._first], beginning.configuration
        future = cluster.submit(_begin_on, block, cluster.send((beginning, self._whole)))
        start, found = cluster.gather([future], names=[self._partitions.names[self._first]])[0]
        for text, category in found:
            warn_user(text, category)
        last = start.state.n_iter + 1 if beginning.adds_epoch else own.stopping.max_iter
        parts = (
            cluster,
            self._partitions,
            self._sizes,
            self._whole,
            start.problem,
            start.features,
            own.runtime,
        )
        self._training = _ShardSource(*parts)
        self._training.batch_size = start.problem.updates.batch_size
        self._training.interval, self._training.max_iter = self.interval, last
        if not beginning.adds_epoch:
            is_automatic = own.updates.learning_rate is None
            self._training.warn_of_few_updates(start.problem.updates.is_solver, is_automatic)
        return replace(start, source=self._training)

    def validated(self, call: Call, start: Start, adapts: bool) -> tuple[Start, Any]:
        """Return start and validation, which is on the driver if the samples are in memory."""
        return start, validation_on(self, call, start)

    def settings(self, settings: LoopSettings) -> LoopSettings:
        """Return the settings of a loop over rounds."""
        return replace(settings, batch_size=1, columns=self._training.columns)


def _begin_on(block: SampleBlock, arguments: tuple[Beginning, SourceTotals]) -> tuple[Start, list]:
    """Return the start of a training, with few samples to be sent to the driver, and its warnings."""
    beginning, whole = arguments
    with runtime_errors(), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        start = beginning.start(in_memory(beginning.configuration, block), whole, solves=True)
    few = start.data.take(np.arange(min(len(start.data), KEPT)))
    shown = [(str(item.message), item.category) for item in found if issubclass(item.category, UserWarning)]
    return replace(start, data=few), shown
