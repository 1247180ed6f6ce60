"""Tasks that train on a shard, run on the workers: pure functions of their arguments.

A process receives the :class:`Program` of a training once, and caches training steps in it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..data.orders import batch_sizes, epoch_order
from ..data.samples import Data
from ..problem.configuration import Runtime
from ..runtime.buffers import CarriedBuffers
from ..runtime.errors import runtime_errors
from ..training.divergence import Diverged, check_last
from ..training.graphs.task import TrainingTask
from ..training.steps.base_step import BaseStep
from .averaging import Mean, merged

__all__ = ["LocalEpochs", "Outcome", "Program", "Report", "evaluate", "merge_outcomes", "train"]

#: Largest number of batch sizes for which a process caches training steps.
MAX_STEPS = 256


class _StepCache:
    """Idle training steps of a process, by the batch sizes of their shards; it is not pickled."""

    def __init__(self) -> None:
        self._free: dict[Hashable, list[Any]] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _StepCache.__init__(self)

    def take(self, key: Hashable, program: Program) -> Any:
        """Return an idle step, or a new one."""
        with self._lock:
            if steps := self._free.get(key):
                return steps.pop()
        return program.runtime.new_step(program.task)

    def put(self, key: Hashable, step: Any) -> None:
        """Cache a step, and drop the least recently used ones."""
        with self._lock:
            self._free.setdefault(key, []).append(step)
            self._free[key] = self._free.pop(key)
            while len(self._free) > MAX_STEPS:
                del self._free[next(iter(self._free))]


@dataclass(frozen=True)
class Program:
    """Training of a shard; without a seed, samples are in the order of the shard."""

    task: TrainingTask
    runtime: Runtime
    batch_size: int
    seed: int | None
    version: int
    steps: _StepCache = field(default_factory=_StepCache)


class LocalEpochs(NamedTuple):
    """Epochs, counted from 0, with their rates, and the range of batches of a shard in a round."""

    shard: int
    epochs: tuple[int, ...]
    rates: tuple[float, ...]
    first: int
    last: int


class Report(NamedTuple):
    """Statistics of a shard in a round: samples and weight of an epoch, and the mean objective of each."""

    shard: int
    n_samples: int
    weight: float
    losses: tuple[float, ...]
    seconds: float
    worker: str


class Outcome(NamedTuple):
    """Result of a round on some shards: the mean of their weights and states, and their reports."""

    mean: Mean
    reports: tuple[Report, ...]


def train(program: Program, arrays: Mapping[Any, np.ndarray], data: Data, local: LocalEpochs) -> Outcome:
    """Train on a shard from weights and states, given by (weight, state), and return the outcome."""
    started, size = time.perf_counter(), program.batch_size
    sizes = batch_sizes(len(data), size)
    weights = {name: array for (name, state), array in arrays.items() if state is None}
    states = {key: array for key, array in arrays.items() if key[1] is not None}
    arguments = data, sizes, weights, states, len(data)
    with _started(program, tuple(sizes), *arguments) as (step, buffers):
        losses: list[float] = []
        order, weight = np.empty(0, np.int64), 0.0
        try:
            for epoch, rate in zip(local.epochs, local.rates, strict=True):
                order = epoch_order(len(data), program.seed, epoch, local.shard, program.version)
                order = order[local.first * size : local.last * size]
                step.set_rate(rate)
                step.checks_loss = epoch == local.first == 0
                values = step.run_epoch(order, size, buffers)
                if not np.isfinite(values[-1]):
                    raise Diverged(float(values[-1]))
                of_batches = step.batch_weights(order, size)
                weight = float(of_batches.sum())
                losses.append(float(np.dot(values, of_batches) / weight) if weight > 0 else 0.0)
            check_last(step, buffers, order[-(len(order) % size or size) :])
            found = buffers.read()
        except Diverged as diverged:
            found, losses = {}, [diverged.value if not np.isfinite(diverged.value) else float("nan")]
    n_samples, seconds = len(order) * len(local.epochs), time.perf_counter() - started
    report = Report(local.shard, n_samples, weight, tuple(losses), seconds, worker_name())
    return Outcome(Mean(found, weight), (report,))


@contextmanager
def _started(program: Program, key: Hashable, *arguments: Any) -> Iterator[tuple[BaseStep, CarriedBuffers]]:
    """Yield a step that is started, with its buffers; keep it for later rounds."""
    with runtime_errors():
        kept = program.steps.take(key, program)
        step = kept.selected(*arguments)
        yield step, step.start(*arguments)
        step.release()
    program.steps.put(key, kept)


def worker_name() -> str:
    """Return the address of the worker that runs the task."""
    from distributed import get_worker

    try:
        return get_worker().address
    except ValueError:  # outside of a worker
        return "driver"


def merge_outcomes(first: Outcome, second: Outcome) -> Outcome:
    """Return the merged outcome of two groups of shards; without arrays if one of them diverged."""
    reports = (*first.reports, *second.reports)
    if not (first.mean.arrays and second.mean.arrays):
        return Outcome(Mean({}, first.mean.weight + second.mean.weight), reports)
    return Outcome(merged(first.mean, second.mean), reports)


def evaluate(
    program: Program, weights: Mapping[str, np.ndarray], width: float, data: Data, shard: int
) -> Outcome:
    """Return the objective of a shard, as ``"value"``, and its gradient, as ``"gradient"``."""
    started = time.perf_counter()
    with _started(program, "all samples", data, [], weights) as (step, _):
        value, gradient = step.evaluate(weights, width)
    weight = data.total_weight
    seconds = time.perf_counter() - started
    report = Report(shard, len(data), weight, (value,), seconds, worker_name())
    return Outcome(Mean({"value": np.array(value), "gradient": gradient}, weight), (report,))
