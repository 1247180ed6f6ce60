"""Exact training: workers compute objective and gradient of shards, the driver sums them and updates."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from distributed import Future

from ..data.orders import ORDER_VERSION
from ..data.samples import Data
from ..learning_rates import LearningRateLBFGS
from ..penalties import NoPenalty
from ..runtime.sessions import make_session
from ..training.graphs.names import RATE
from ..training.graphs.task import TrainingTask
from ..training.solvers.coordinates import Coordinates
from ..training.solvers.full_batch import FullBatchStep
from ..training.steps.two_call_graphs import update_graph
from . import tasks
from .averaging import merge_in_pairs
from .rounds import ClusterStep, Round
from .shards import ShardSamples

__all__ = ["ClusterFullBatchStep", "GradientRounds"]


class _ShardGradients:
    """Objective and gradient of all shards."""

    def __init__(self, samples: ShardSamples, task: TrainingTask, shards: list[Future]):
        self._samples, self._shards = samples, shards
        program = tasks.Program(task, samples.runtime, 0, None, ORDER_VERSION)
        self._program = samples.cluster.send(program)

    def of(self, weights: dict[str, np.ndarray], width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return objective and gradient at some weights, in one round."""
        cluster = self._samples.cluster
        arguments = (self._program, cluster.send(weights), width)
        futures = [
            cluster.submit(tasks.evaluate, *arguments, data, shard) for shard, data in enumerate(self._shards)
        ]
        found = merge_in_pairs(self._samples.gather(futures), tasks.merge_outcomes)
        self._samples.add_reports(found.reports)
        arrays = found.mean.arrays
        return float(arrays["value"]), np.array(arrays["gradient"], dtype=np.float64)


class ClusterFullBatchStep(FullBatchStep):
    """Full-batch step whose objective and gradient are computed on the cluster."""

    def __init__(self, samples: ShardSamples, task: TrainingTask, shards: list[Future]):
        super().__init__(task, samples.runtime.device, samples.runtime.n_jobs)
        self._samples, self._shard_gradients = samples, _ShardGradients(samples, task, shards)

    def coordinates(self) -> Coordinates:
        """Return the coordinates that standardise features by the moments of all shards."""
        if self._coordinates is None:
            assert self._samples.preparation is not None
            measured = self._samples.measure(self._samples.preparation)
            self._coordinates = Coordinates(self.task, self._data, self._shapes, measured=measured)
        return self._coordinates

    def start(self, data: Data, weights: dict[str, np.ndarray], whole: bool = True) -> None:
        """Keep the samples on the driver and the shapes of the weights, for the coordinates."""
        self._data, self._shapes = data, {name: array.shape for name, array in weights.items()}

    def evaluate(self, vector: np.ndarray, width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return objective and gradient of all samples at a vector of all weights, in float64."""
        return self._shard_gradients.of(self.unpack(vector), width)

    def release(self) -> None:
        """Release the samples."""
        self._data = self._coordinates = self._shard_gradients = None  # type: ignore[assignment]


class GradientRounds:
    """Epochs of one batch: a round sums the gradients of all shards, and the driver updates the weights."""

    n_samples = 1

    def __init__(self, samples: ShardSamples, step: ClusterStep, shards: list[Future]):
        self._samples, self._step = samples, step
        task = step.task.changed(learning_rate=LearningRateLBFGS(), penalty=NoPenalty())
        self._shard_gradients = _ShardGradients(samples, task, shards)
        self._update = update_graph(step.task)
        self._session = make_session(self._update.model, samples.runtime.device, samples.runtime.n_jobs)

    def chunks(self, epoch: int, n_skipped: int) -> Generator[tuple[Round, np.ndarray], None, None]:
        """Yield the result of the round of an epoch, unless it is done."""
        if not n_skipped:
            yield self._run(), np.array([0])

    def _run(self) -> Round:
        """Return the updated weights and states."""
        arrays, names = self._step.buffers.read(), self._step.task.graph.weights
        loss, gradient = self._shard_gradients.of({name: arrays[name, None] for name in names})
        feeds: dict[str, Any] = {RATE: np.array(self._step.rate, dtype=self._step.task.graph.dtype)}
        feeds |= {item.source: arrays[item.weight, item.state] for item in self._update.carried}
        start = 0
        for name in names:
            own = arrays[name, None]
            part = gradient[start : start + own.size].reshape(own.shape)
            feeds[f"{name}_grad"], start = part.astype(own.dtype), start + own.size
        known = {value.name for value in self._session.get_inputs()}
        results = [item.result for item in self._update.carried]
        values = [] if self._update.value is None else [self._update.value]
        found = self._session.run([*results, *values], {k: v for k, v in feeds.items() if k in known})
        new = {
            (item.weight, item.state): array
            for item, array in zip(self._update.carried, found[: len(results)], strict=True)
        }
        return Round(new, loss + sum(map(float, found[len(results) :])))
