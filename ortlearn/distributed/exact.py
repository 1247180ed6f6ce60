"""Exact training: objective and gradient are summed over the shards, and the driver makes the step."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from distributed import Future

from ..learning_rates import LearningRateLBFGS
from ..penalties import NoPenalty
from ..training import Data, FullBatchStep, TrainingTask, make_session
from ..training.batches import ORDER_VERSION
from ..training.coordinates import Coordinates
from ..training.step_graphs import RATE
from ..training.two_call_graphs import update_graph
from . import tasks
from .rounds import ClusterStep, Round, reduced
from .shards import ShardSamples

__all__ = ["ClusterFullBatchStep", "GradientRounds"]


class _Sums:
    """Objective and gradient of all shards.

    Parameters
    ----------
    samples : ShardSamples
        Shards.
    task : TrainingTask
        What is trained, by a solver.
    shards : list of Future
        Samples as the graph takes them.
    """

    def __init__(self, samples: ShardSamples, task: TrainingTask, shards: list[Future]):
        self._samples, self._shards = samples, shards
        program = tasks.Program(task, samples.runtime, 0, None, ORDER_VERSION)
        self._program = samples.cluster.send(program)

    def of(self, weights: dict[str, np.ndarray], width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return objective and gradient of weights: a round."""
        cluster = self._samples.cluster
        begun = cluster.send(weights)
        arguments = (self._program, begun, width)
        futures = [
            cluster.submit(tasks.evaluate, *arguments, data, shard) for shard, data in enumerate(self._shards)
        ]
        found = reduced(self._samples.gather(futures))
        self._samples.note(found.reports)
        arrays = found.mean.arrays
        return float(arrays["value"]), np.array(arrays["gradient"], dtype=np.float64)


class ClusterFullBatchStep(FullBatchStep):
    """The objective of the rows of all shards, and its gradient, in one round.

    Parameters
    ----------
    samples : ShardSamples
        Shards.
    task : TrainingTask
        What is trained; its learning rate is a solver.
    """

    def __init__(self, samples: ShardSamples, task: TrainingTask):
        super().__init__(task, samples.runtime.device, samples.runtime.n_jobs)
        self._samples = samples
        self._sums: _Sums | None = None

    def takes(self, shards: list[Future]) -> None:
        """Take note of the samples."""
        self._sums = _Sums(self._samples, self.task, shards)

    def coordinates(self) -> Coordinates:
        """Return coordinates in which the features of all shards are standardised."""
        if self._coordinates is None:
            assert self._samples.preparation is not None
            measured = self._samples.measure(self._samples.preparation)
            self._coordinates = Coordinates(self.task, self._data, self._shapes, measured=measured)
        return self._coordinates

    def start(self, data: Data, weights: dict[str, np.ndarray]) -> None:
        """Take note of some of the samples, and of the shapes of the weights."""
        self._data, self._shapes = data, {name: array.shape for name, array in weights.items()}

    def evaluate(self, vector: np.ndarray, width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return the objective of all rows and its gradient, of a vector of all weights, in float64."""
        assert self._sums is not None
        return self._sums.of(self.unpack(vector), width)

    def release(self) -> None:
        """Let go of the samples."""
        self._data = self._coordinates = self._sums = None  # type: ignore[assignment]


class GradientRounds:
    """Passes of one batch of all rows: a round sums the gradient, and the driver updates the weights.

    Parameters
    ----------
    samples : ShardSamples
        Shards.
    step : ClusterStep
        Weights, states and rate.
    shards : list of Future
        Samples as the graph takes them.

    Attributes
    ----------
    n_samples : int
        Rounds of a pass: one.
    """

    n_samples = 1

    def __init__(self, samples: ShardSamples, step: ClusterStep, shards: list[Future]):
        self._samples, self._step = samples, step
        task = step.task.changed(learning_rate=LearningRateLBFGS(), penalty=NoPenalty())
        self._sums = _Sums(samples, task, shards)
        self._update = update_graph(step.task)
        self._session = make_session(self._update.model, samples.runtime.device, samples.runtime.n_jobs)

    def chunks(self, epoch: int, n_rows: int) -> Generator[tuple[Round, np.ndarray], None, None]:
        """Yield what the update of a pass leaves."""
        if not n_rows:
            yield self._run(), np.array([0])

    def _run(self) -> Round:
        arrays, names = self._step.buffers.read(), self._step.task.graph.weights
        loss, gradient = self._sums.of({name: arrays[name, None] for name in names})
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
        return Round(new, loss + sum(map(float, found[len(results) :])), np.ones(1))
