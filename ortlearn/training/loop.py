"""The training loop."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any

import numpy as np

from ..data.orders import batch_sizes
from ..data.passes import Chunk, Passes, PassesInMemory
from ..data.samples import Data
from ..learning_rates import Rates
from ..runtime.buffers import CarriedBuffers
from .divergence import Diverged, check_last, report
from .monitor import Monitor
from .progress import progress_bar
from .settings import LoopSettings, Observer, Validate
from .state import TrainingState, Unfinished
from .steps import batch_timer
from .steps.base_step import BaseStep

__all__ = ["run_training"]

#: Minimum seconds between two calls of ``pause`` of an observer.
PAUSE = 0.05
#: Number of objectives in the message about a non-finite loss.
RECENT = 10


def run_training(
    step: BaseStep,
    data: Data,
    state: TrainingState,
    settings: LoopSettings,
    *,
    shard: int = 0,
    validate: Validate | None = None,
    observer: Observer | None = None,
    passes: Passes | None = None,
) -> TrainingState:
    """Train from a state, and return the state afterwards.

    The order of an epoch depends only on seed, shard and epoch. ``passes`` has the samples of every epoch if
    ``data`` is only a part of them. The exception Unfinished has the last state.
    """
    if passes is None:
        seed = state.seed if settings.shuffle else None
        passes = PassesInMemory(data, seed, shard, state.order_version)
    sizes = batch_sizes(passes.n_samples, settings.batch_size)
    arguments = data, sizes, state.points, state.states, passes.n_samples
    step = step.selected(*arguments)
    buffers = step.start(*arguments)
    step.checks_loss = not state.has_updates
    with progress_bar(
        settings.max_iter, settings.description, bool(settings.verbose), settings.stream
    ) as advance:
        monitor = Monitor(settings, state, buffers.split, validate, observer, advance)
        run = _EpochLoop(step, passes, buffers, settings, monitor, observer)
        try:
            run.train()
        except Diverged as diverged:
            report(diverged, run.recent(), run.rate, settings, len(monitor.history))
        except KeyboardInterrupt as interrupt:
            raise Unfinished(monitor.state()) from interrupt
        else:
            monitor.check_end()
    return monitor.finish(buffers.current)


class _EpochLoop:
    """A training in epochs, whose monitor knows what is complete."""

    def __init__(
        self,
        step: BaseStep,
        passes: Passes,
        buffers: CarriedBuffers,
        settings: LoopSettings,
        monitor: Monitor,
        observer: Observer | None,
    ):
        self.step, self.passes, self.buffers = step, passes, buffers
        self.settings, self.monitor = settings, monitor
        self.rate = float("nan")
        self._n_batches = -(-passes.n_samples // settings.batch_size)
        self._on_pause = getattr(observer, "pause", None)
        self._last_pause = batch_timer.clock()
        monitor.mark.part = (buffers.current, 1, (), 0)
        self._epoch = monitor.mark.epoch

    def recent(self, values: np.ndarray | None = None) -> list[float]:
        """Return the last objectives, including those of the current epoch."""
        values = np.concatenate(self._epoch.objectives) if values is None else values
        return [*self.monitor.mark.recent, *values[-RECENT:].tolist()][-RECENT:]

    def train(self) -> None:
        """Train until the last epoch, or until the monitor stops; check the final weights."""
        monitor, buffers = self.monitor, self.buffers
        rates = Rates(self.step.task.update.learning_rate, monitor.losses)
        first = len(monitor.history)
        epochs = range(first, first if monitor.stopped else self.settings.max_iter)
        for epoch in epochs:
            monitor.begin()
            self.rate = rates.of(epoch)
            self.step.set_rate(self.rate)
            samples = self._run_epoch(epoch)
            values, weights = self._epoch.measured()
            loss = float(np.dot(values, weights) / weights.sum())
            rates.note(loss)
            stops = monitor.end(loss, self.rate, self.recent(values), buffers.current)
            self._epoch = monitor.mark.epoch
            if stops:
                break
        if not epochs:  # resumed after the last epoch
            last = max(first - 1, 0)
            self.step.set_rate(rates.of(last))
            samples = self._last_batch(last)
        check_last(self.step, buffers, samples)

    def _run_epoch(self, number: int) -> np.ndarray:
        """Update on the remaining batches of an epoch; return the samples of the last one."""
        size, samples = self.settings.batch_size, np.empty(0, np.int64)
        with closing(self._chunks(number, self._epoch.n_batches)) as chunks:
            for data, order in chunks:
                self.step.load(data, self.buffers)
                samples = order[-(len(order) % size or size) :].copy()  # a view would keep the order alive
                # The last batch of a chunk is a separate part: if it makes the weights non-finite, which the
                # next chunk detects, the weights before it are needed.
                for part in [order] if self.step.has_all_samples else [order[: -len(samples)], samples]:
                    if len(part):
                        self._run_part(part)
        return samples

    def _run_part(self, order: np.ndarray) -> None:
        """Update on a part of the batches of an epoch."""
        epoch, size = self._epoch, self.settings.batch_size
        epoch.begin_part(self.step.batch_weights(order, size))
        values = self.step.run_epoch(order, size, self.buffers, self._pause)
        epoch.end_part(values)
        if not np.isfinite(values[-1]):
            raise Diverged(float(values[-1]))
        if epoch.n_batches < self._n_batches:
            self._pause([])

    def _pause(self, values: list[Any]) -> None:
        """Record that some batches are complete, and call ``pause`` of the observer from time to time."""
        n_parts = len(self._epoch.objectives)
        self.monitor.mark.part = self.buffers.current, n_parts, values, len(values)
        if self._on_pause is None:
            return
        now = batch_timer.clock()
        if now - self._last_pause > PAUSE:
            self._last_pause = now
            self._on_pause(self.monitor.state)

    def _chunks(self, epoch: int, n_batches: int) -> Generator[Chunk, None, None]:
        """Yield the chunks of an epoch after ``n_batches`` batches."""
        with closing(self.passes.chunks(epoch, n_batches * self.settings.batch_size)) as chunks:
            while True:
                try:
                    chunk = next(chunks)
                except StopIteration:
                    return
                except Exception as error:
                    raise Unfinished(self.monitor.state()) from error
                yield chunk

    def _last_batch(self, epoch: int) -> np.ndarray:
        """Load the last chunk of an epoch, and return the samples of its last batch."""
        with closing(self._chunks(epoch, self._n_batches - 1)) as chunks:
            data, samples = next(chunks)
            self.step.load(data, self.buffers)
        return samples
