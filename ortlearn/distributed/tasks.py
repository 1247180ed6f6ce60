"""The tasks of a distributed training: functions of what they are given alone, run on the workers.

What a task needs besides its shard is a :class:`Program`, which a process receives once. The steps that a
process keeps there are a cache, filled again wherever it is empty.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..estimators.configuration import Runtime
from ..graphs import runtime_errors
from ..training import Data, TrainingTask, batch_sizes
from ..training.batches import batch_shares, epoch_order
from ..training.divergence import Diverged, check_last
from .averaging import Mean, merged
from .readings import weight_of

__all__ = ["Outcome", "Program", "Report", "Visit", "evaluate", "merge_outcomes", "train"]

#: Steps for shards of other sizes of batch that a process keeps.
MOST_STEPS = 256


class _Steps:
    """Training steps of a process that no task uses at the moment, by the sizes of their shards."""

    def __init__(self) -> None:
        self._free: dict[Hashable, list[Any]] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _Steps.__init__(self)

    def take(self, key: Hashable, program: Program) -> Any:
        """Return a step, a new one without any."""
        with self._lock:
            if steps := self._free.get(key):
                return steps.pop()
        return program.runtime.new_step(program.task)

    def put(self, key: Hashable, step: Any) -> None:
        """Keep a step; those that were not used for longest are forgotten."""
        with self._lock:
            self._free.setdefault(key, []).append(step)
            self._free[key] = self._free.pop(key)
            while len(self._free) > MOST_STEPS:
                del self._free[next(iter(self._free))]


@dataclass(frozen=True)
class Program:
    """How shards are trained on.

    Attributes
    ----------
    task : TrainingTask
        What is trained.
    runtime : Runtime
        Device, threads and kind of step.
    batch_size : int
        Rows of a batch.
    seed : int or None
        Seed of the orders; None keeps rows in their own.
    version : int
        Version of the orders.
    """

    task: TrainingTask
    runtime: Runtime
    batch_size: int
    seed: int | None
    version: int
    steps: _Steps = field(default_factory=_Steps)


class Visit(NamedTuple):
    """What a round visits of a shard.

    Attributes
    ----------
    shard : int
        Number of the shard.
    epochs : tuple of int
        Passes, counted from 0.
    rates : tuple of float
        Learning rate of each.
    first, last : int
        Batches of a pass: the first one, and the one after the last.
    """

    shard: int
    epochs: tuple[int, ...]
    rates: tuple[float, ...]
    first: int
    last: int


class Report(NamedTuple):
    """Numbers of a shard in a round.

    Attributes
    ----------
    shard : int
        Number of the shard.
    rows : int
        Rows that were visited.
    weight : float
        Sum of the weights of those of a pass.
    losses : tuple of float
        Mean objective of each pass; not finite where training diverged.
    seconds : float
        Time of the computation.
    worker : str
        Process that made it.
    """

    shard: int
    rows: int
    weight: float
    losses: tuple[float, ...]
    seconds: float
    worker: str


class Outcome(NamedTuple):
    """What a round leaves of some shards: the mean of their weights and states, and their numbers."""

    mean: Mean
    reports: tuple[Report, ...]


def train(program: Program, arrays: Mapping[Any, np.ndarray], data: Data, visit: Visit) -> Outcome:
    """Return what training on a shard leaves; arrays are weights and states by weight and state."""
    begun, size = time.perf_counter(), program.batch_size
    key = tuple(batch_sizes(len(data), size))
    weights = {name: array for (name, state), array in arrays.items() if state is None}
    states = {key: array for key, array in arrays.items() if key[1] is not None}
    with runtime_errors():
        step = program.steps.take(key, program)
        buffers = step.start(data, batch_sizes(len(data), size), weights, states, len(data))
        losses: list[float] = []
        order, weight = np.empty(0, np.int64), 0.0
        try:
            for epoch, rate in zip(visit.epochs, visit.rates, strict=True):
                order = epoch_order(len(data), program.seed, epoch, visit.shard, program.version)
                order = order[visit.first * size : visit.last * size]
                step.set_rate(rate)
                step.checks_loss = epoch == visit.first == 0
                values = step.run_epoch(order, size, buffers)
                if not np.isfinite(values[-1]):
                    raise Diverged(float(values[-1]))
                shares = batch_shares(order, size, data.row_weight)
                weight = float(shares.sum())
                losses.append(float(np.dot(values, shares) / shares.sum()) if weight > 0 else 0.0)
            check_last(step, buffers, order[-(len(order) % size or size) :])
            found = buffers.read()
        except Diverged as diverged:
            found, losses = {}, [diverged.value if not np.isfinite(diverged.value) else float("nan")]
        step.release()
    program.steps.put(key, step)
    n_rows, seconds = len(order) * len(visit.epochs), time.perf_counter() - begun
    report = Report(visit.shard, n_rows, weight, tuple(losses), seconds, worker_name())
    return Outcome(Mean(found, weight), (report,))


def worker_name() -> str:
    """Return the address of the worker that runs this task."""
    from distributed import get_worker

    try:
        return get_worker().address
    except ValueError:  # in a thread of its own
        return "driver"


def merge_outcomes(first: Outcome, second: Outcome) -> Outcome:
    """Return what a round leaves of the shards of both; nothing is averaged once one diverged."""
    reports = (*first.reports, *second.reports)
    if not (first.mean.arrays and second.mean.arrays):
        return Outcome(Mean({}, first.mean.weight + second.mean.weight), reports)
    return Outcome(merged(first.mean, second.mean), reports)


def evaluate(
    program: Program, weights: Mapping[str, np.ndarray], width: float, data: Data, shard: int
) -> Outcome:
    """Return objective and gradient of a shard by one vector of weights, ``"value"`` and ``"gradient"``."""
    begun, key = time.perf_counter(), "all rows"
    with runtime_errors():
        step = program.steps.take(key, program)
        step.start(data, weights)
        value, gradient = step.evaluate(step.pack(weights), width)
        step.release()
    program.steps.put(key, step)
    weight = weight_of(data)
    seconds = time.perf_counter() - begun
    report = Report(shard, len(data), weight, (value,), seconds, worker_name())
    return Outcome(Mean({"value": np.array(value), "gradient": gradient}, weight), (report,))
