"""Rounds: each shard is trained from the same weights, and the driver averages the resulting weights."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from distributed import Future

from ..data.orders import ORDER_VERSION
from ..data.samples import Data
from ..exceptions import PluginError
from ..learning_rates import Rates
from ..runtime.buffers import Carried, CarriedBuffers
from ..runtime.devices import parse_device
from ..training.divergence import Diverged
from ..training.graphs.averaging import Averaged
from ..training.graphs.task import TrainingTask
from ..training.steps.base_step import BaseStep, Pause
from . import tasks
from .averaging import merge_in_pairs
from .shards import ShardSamples

__all__ = ["ClusterStep", "Interval", "Round", "Rounds"]

#: Bytes of the results of a round above which workers merge them; smaller results are gathered faster.
TREE_BYTES = 2**23
INTERVAL = re.compile(r"\s*(?P<count>[1-9]\d*)\s*(?P<unit>pass(es)?|batch(es)?)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Interval:
    """Length of a round: a number of epochs, or of batches if a round is a part of an epoch."""

    passes: int = 1
    batches: int | None = None

    @classmethod
    def of(cls, sync_every: Any) -> Interval:
        """Return the interval of the parameter ``sync_every``; raise a ValueError if it is invalid."""
        if isinstance(sync_every, Integral) and not isinstance(sync_every, bool) and int(sync_every) > 0:
            return cls(int(sync_every))
        found = INTERVAL.fullmatch(sync_every) if isinstance(sync_every, str) else None
        if found is None:
            raise ValueError(
                f"sync_every={sync_every!r} must be a number of passes, such as 1 or '2 passes', or a number "
                "of batches, such as '100 batches'."
            )
        count = int(found["count"])
        return cls(count) if found["unit"].lower().startswith("pass") else cls(1, count)

    def n_rounds(self, sizes: list[int], batch_size: int) -> int:
        """Return the number of rounds per epoch for shards of these sizes."""
        most = -(-max(sizes) // batch_size)
        return 1 if self.batches is None else -(-most // self.batches)


class Round(NamedTuple):
    """Result of a round, which the step of the driver loads: one batch of an epoch."""

    arrays: dict | None  # weights and states; None before the last epoch of the round
    loss: float
    weight: float = 1.0  # weight in the mean loss of an epoch
    where: str = ""  # names a shard that diverged


class ClusterStep(BaseStep):
    """Training step of the driver, whose shards are trained, or compute gradients, in rounds."""

    buffers: CarriedBuffers
    rate: float

    def __init__(self, samples: ShardSamples, task: TrainingTask):
        self._samples = samples
        super().__init__(_shard_task(task, len(samples.sizes)), parse_device("cpu"))

    def build(self) -> list[Carried]:
        """Return an empty list: states depend on the shapes of the weights, which ``start`` gets."""
        return []

    def start(
        self,
        data: Data,
        sizes: list[int],
        weights: dict[str, np.ndarray],
        states: dict | None = None,
        n_samples: int | None = None,
    ) -> CarriedBuffers:
        """Keep weights and states on the driver."""
        self.carried = [
            Carried(name, state, f"{name} {state}", f"new {name} {state}")
            for name, array in weights.items()
            for state in (None, *self.task.update.learning_rate.init(array))
        ]
        self.buffers = super().start(data, sizes, weights, states, n_samples)
        return self.buffers

    def bind(self, data: Data, sizes: list[int], buffers: CarriedBuffers) -> None:
        """Do nothing before the first round."""

    def rebind(self, data: Any, buffers: CarriedBuffers) -> None:
        """Do nothing: a result of a round has no tensors."""

    @property
    def has_all_samples(self) -> bool:
        """Whether all samples of an epoch are bound."""
        return False

    def batch_weights(self, order: np.ndarray, batch_size: int) -> np.ndarray:
        """Return the weight of the round."""
        return np.array([self._data.weight])

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next rounds."""
        self.rate = rate

    def run_epoch(
        self, order: np.ndarray, batch_size: int, buffers: CarriedBuffers, pause: Pause | None = None
    ) -> np.ndarray:
        """Return the mean objective of a round, and take over its weights and states."""
        found = self._data
        if not np.isfinite(found.loss):
            raise Diverged(found.loss, found.where)
        if found.arrays is not None:
            buffers.advance()
            buffers.write(found.arrays)
        return np.array([found.loss])

    def run(self, samples: np.ndarray, buffers: CarriedBuffers) -> float:
        """Return the objective of the last round; the workers have checked its batches."""
        return self._data.loss if isinstance(self._data, Round) else 0.0

    @cached_property
    def _program(self) -> Future:
        """Program of the workers that compute objective and gradient."""
        program = tasks.Program(self.task, self._samples.runtime, 0, None, ORDER_VERSION)
        return self._samples.cluster.send(program)

    def evaluate(self, weights: Mapping[str, np.ndarray], width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return the objective of all shards and its gradient, in one round."""
        samples, cluster = self._samples, self._samples.cluster
        arguments = self._program, cluster.send(dict(weights)), width
        futures = [
            cluster.submit(tasks.evaluate, *arguments, data, shard)
            for shard, data in enumerate(samples.shards)
        ]
        found = merge_in_pairs(samples.gather(futures), tasks.merge_outcomes)
        samples.add_reports(found.reports)
        arrays = found.mean.arrays
        return float(arrays["value"]), np.array(arrays["gradient"], dtype=np.float64)

    def release(self) -> None:
        """Release the last round and the program."""
        self._data = None
        vars(self).pop("_program", None)

    def graphs(self) -> dict:
        """Return the graphs of the step of a worker."""
        return self._samples.runtime.new_step(self.task).graphs()


def _shard_task(task: TrainingTask, n_shards: int) -> TrainingTask:
    """Return a task whose weight averaging begins earlier: a shard has only its share of the updates."""
    rate = task.update.learning_rate
    if not isinstance(rate, Averaged):
        return task
    return task.changed(learning_rate=Averaged(rate.learning_rate, 1 + (rate.begin - 1) // n_shards))


class Rounds:
    """Epochs in rounds; a round has one task per shard."""

    def __init__(
        self,
        samples: ShardSamples,
        step: ClusterStep,
        program: tasks.Program,
        interval: Interval,
        max_iter: int,
    ):
        self.n_samples = interval.n_rounds(samples.sizes, program.batch_size)
        self._samples, self._step, self._interval = samples, step, interval
        self._n_batches = [-(-size // program.batch_size) for size in samples.sizes]
        self._program, self._max_iter = samples.cluster.send(program), max_iter
        self._last: tuple[int, tasks.Outcome] | None = None  # first epoch of the last round, and its outcome
        rate = step.task.update.learning_rate
        if interval.passes > 1 and rate.start() is not None:
            raise PluginError(
                f"{rate!r} has a schedule that needs the loss of every pass, but rounds have "
                f"{interval.passes} passes: set sync_every=1, or use another schedule."
            )

    def chunks(self, epoch: int, n_skipped: int) -> Generator[tuple[Round, np.ndarray], None, None]:
        """Yield the results of the rounds of an epoch, from number ``n_skipped`` on."""
        for number in range(n_skipped, self.n_samples):
            yield self._run(epoch, number), np.array([number])

    def _run(self, epoch: int, number: int) -> Round:
        """Return the result of an epoch in a round; a round of several epochs runs in the first of them."""
        first = epoch - epoch % self._interval.passes
        epochs = tuple(range(first, min(first + self._interval.passes, self._max_iter)))
        if self._last is None or self._last[0] != first or len(epochs) == 1:
            self._last = first, self._outcome(epochs, number)
        outcome, is_last = self._last[1], epoch == epochs[-1]
        weight = 1.0 if self.n_samples == 1 else outcome.mean.weight
        failed = [r for r in outcome.reports if not np.isfinite(r.losses).all()]
        if failed:
            return Round(None, failed[0].losses[-1], weight, f" in {self._samples.names[failed[0].shard]}")
        self._samples.add_reports(outcome.reports, epoch - first)
        loss = _mean([(report.losses[epoch - first], report.weight) for report in outcome.reports])
        return Round(self._arrays(outcome) if is_last else None, loss, weight)

    def _arrays(self, outcome: tasks.Outcome) -> dict:
        """Return the averages, with the types of weights and states."""
        known = self._step.buffers.read()
        return {key: outcome.mean.arrays[key].astype(array.dtype) for key, array in known.items()}

    def _outcome(self, epochs: tuple[int, ...], number: int) -> tasks.Outcome:
        """Run a round on the cluster."""
        cluster, arrays = self._samples.cluster, self._step.buffers.read()
        sent = cluster.send(arrays)
        size = self._interval.batches or max(self._n_batches)
        rates, futures, names = self._rates(epochs), [], []
        for shard, data in enumerate(self._samples.shards):
            local = tasks.LocalEpochs(shard, epochs, rates, number * size, (number + 1) * size)
            if local.first < self._n_batches[shard]:
                futures.append(cluster.submit(tasks.train, self._program, sent, data, local))
                names.append(self._samples.names[shard])
        n_bytes = sum(array.nbytes for array in arrays.values()) * len(futures)
        if n_bytes > TREE_BYTES:
            merged = merge_in_pairs(futures, partial(cluster.submit, tasks.merge_outcomes))
            return cluster.gather([merged], futures, names)[0]
        return merge_in_pairs(cluster.gather(futures, names=names), tasks.merge_outcomes)

    def _rates(self, epochs: tuple[int, ...]) -> tuple[float, ...]:
        """Return the learning rate of each epoch."""
        if len(epochs) == 1:
            return (self._step.rate,)
        rates = Rates(self._step.task.update.learning_rate)
        return tuple(rates.of(epoch) for epoch in epochs)


def _mean(values: list[tuple[float, float]]) -> float:
    """Return a weighted mean; the mean of one value is exactly this value."""
    mean = total = 0.0
    for value, weight in values:
        total += weight
        mean += (value - mean) * (weight / total) if total > 0 else 0.0
    return mean
