"""The training loop."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from ..data.orders import ORDER_VERSION, batch_shares, batch_sizes
from ..data.passes import Chunk, Passes, PassesInMemory
from ..data.samples import Data
from ..learning_rates import Rates
from ..runtime.buffers import CarriedBuffers
from .divergence import Diverged, check_last, report, snapshot_of
from .loop_records import Convert, LoopSettings, Observer, Snapshot, TrainingResult
from .monitor import Monitor, Validate
from .positions import Interrupted, Position, ReadingFailed
from .progress import progress_bar
from .solver_loop import run_full_batch
from .solvers.full_batch import FullBatchStep
from .steps import batch_timer
from .steps.base_step import BaseStep

__all__ = ["LoopSettings", "TrainingResult", "run_training"]

#: Minimum seconds between two calls of ``pause`` of an observer.
PAUSE = 0.05
#: Objectives of an epoch that has not begun.
NO_OBJECTIVES = np.zeros(0)
#: Number of objectives in the message about a non-finite loss.
RECENT = 10


def run_training(
    step: BaseStep | FullBatchStep,
    data: Data,
    weights: dict[str, np.ndarray],
    settings: LoopSettings,
    seed: int,
    *,
    shard: int = 0,
    states: dict | None = None,
    validate: Validate | None = None,
    observer: Observer | None = None,
    convert: Convert | None = None,
    position: Position | None = None,
    passes: Passes | None = None,
) -> TrainingResult:
    """Train, from the start or from a ``position`` of a training with the same arguments.

    The order of an epoch depends only on seed, shard and epoch. ``passes`` has the samples of every epoch if
    ``data`` is only a part of them. ``convert`` converts trained points in other coordinates to weights. The
    exceptions Interrupted and ReadingFailed have a snapshot of the training.
    """
    if isinstance(step, FullBatchStep):
        return run_full_batch(step, data, weights, settings, validate, observer, position=position)
    if position is not None:
        weights, states = position.weights, position.states
    if passes is None:
        version = ORDER_VERSION if position is None else position.order_version
        passes = PassesInMemory(data, seed if settings.shuffle else None, shard, version)
    sizes = batch_sizes(passes.n_samples, settings.batch_size)
    arguments = data, sizes, weights, states, passes.n_samples
    step = step.selected(*arguments)
    buffers = step.start(*arguments)
    step.checks_loss = settings.first_epoch == 0 and position is None
    with progress_bar(
        settings.max_iter, settings.description, bool(settings.verbose), settings.stream
    ) as advance:
        monitor = Monitor(settings, validate, observer, advance, position, convert)
        run = _EpochLoop(step, passes, buffers, settings, monitor, observer, convert, position)
        try:
            run.train()
        except Diverged as diverged:
            report(diverged, run.recent(), run.rate, settings, monitor.result)
        except KeyboardInterrupt as interrupt:
            raise Interrupted(run.located(), *interrupt.args) from interrupt
        else:
            monitor.check_end()
    return monitor.finish(snapshot_of(buffers, convert))


class _Epoch:
    """Objectives of an epoch, as arrays of several batches, and their weights in the mean."""

    def __init__(self, position: Position | None = None):
        known = NO_OBJECTIVES if position is None else position.objectives.astype(np.float64)
        self.objectives, self.n_batches = [known], len(known)
        self._shares = [NO_OBJECTIVES if position is None else position.shares]

    def begin_part(self, shares: np.ndarray) -> None:
        """Add the weights of the next batches."""
        self._shares.append(shares)

    def end_part(self, objectives: np.ndarray) -> None:
        """Add the objectives of these batches."""
        self.objectives.append(objectives)
        self.n_batches += len(objectives)

    def measured(
        self, n_parts: int | None = None, others: Sequence[Any] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives of the first parts, followed by ``others``, and their weights."""
        values = np.concatenate([*self.objectives[:n_parts], *map(np.atleast_1d, others)])
        return values, np.concatenate(self._shares)[: len(values)]


class _LoopState(NamedTuple):
    """State of the loop: complete epochs, their last objectives, the current epoch, and the current copy.

    Of the epoch, ``n_parts`` parts are complete, and the first ``n_values`` batches of the next one.
    """

    n_epochs: int
    recent: list[float]
    epoch: _Epoch
    copy: int
    n_parts: int = 1
    values: list[Any] | None = None
    n_values: int = 0

    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives of the epoch and their weights."""
        return self.epoch.measured(self.n_parts, (self.values or [])[: self.n_values])


def _with_position(snapshot: Snapshot, position: Position, state: Any) -> Snapshot:
    """Return a snapshot with its position, completed by the state of the loop."""
    objectives, shares = state.measured()
    position = replace(
        position,
        objectives=objectives,
        shares=shares,
        recent=state.recent,
        weights=snapshot.raw,
        states=snapshot.states,
    )
    return replace(snapshot, position=position)


class _EpochLoop:
    """A training in epochs; its state is consistent at any interrupt."""

    def __init__(
        self,
        step: BaseStep,
        passes: Passes,
        buffers: CarriedBuffers,
        settings: LoopSettings,
        monitor: Monitor,
        observer: Observer | None,
        convert: Convert | None,
        position: Position | None,
    ):
        self.step, self.passes, self.buffers = step, passes, buffers
        self.settings, self.monitor, self.convert = settings, monitor, convert
        self.rate = float("nan")
        self._n_batches = -(-passes.n_samples // settings.batch_size)
        self._sizes: dict[int, np.ndarray] = {}
        self._on_pause = getattr(observer, "pause", None)
        self._last_pause = batch_timer.clock()
        self._epoch, recent = _Epoch(position), [] if position is None else position.recent
        self._state = _LoopState(monitor.result.n_iter, recent, self._epoch, buffers.current)
        monitor.locate = _with_position

    def located(self) -> Snapshot:
        """Return weights, states and position of the last consistent state."""
        state, position = self._state, self.monitor.position()
        if state.n_epochs < position.n_epochs:  # interrupted between the monitor's update and this one's
            state = cast(_LoopState, self.monitor.loop_state)
        return _with_position(snapshot_of(self.buffers, self.convert, state.copy), position, state)

    def recent(self, values: np.ndarray | None = None) -> list[float]:
        """Return the last objectives, including those of the current epoch."""
        values = np.concatenate(self._epoch.objectives) if values is None else values
        return [*self._state.recent, *values[-RECENT:].tolist()][-RECENT:]

    def train(self) -> None:
        """Train until the last epoch, or until the monitor stops; check the final weights."""
        settings, monitor = self.settings, self.monitor
        past = [*settings.past_losses, *monitor.result.train_losses]
        rates = Rates(self.step.task.update.learning_rate, past)
        first, end = settings.first_epoch + monitor.result.n_iter, settings.first_epoch + settings.max_iter
        epochs = range(first, first if monitor.stopped else end)
        for epoch in epochs:
            monitor.begin()
            self.rate = rates.of(epoch)
            self.step.set_rate(self.rate)
            rows = self._run_epoch(epoch)
            values, shares = self._epoch.measured()
            loss = float(np.dot(values, shares) / shares.sum())
            rates.note(loss)
            state = _LoopState(monitor.result.n_iter + 1, self.recent(values), _Epoch(), self.buffers.current)
            stops = monitor.end(loss, self.rate, lambda: snapshot_of(self.buffers, self.convert), state)
            self._state, self._epoch = state, state.epoch
            if stops:
                break
        if not epochs:  # resumed after the last epoch
            last = max(first - 1, 0)
            self.step.set_rate(rates.of(last))
            rows = self._last_batch(last)
        check_last(self.step, self.buffers, rows)

    def _run_epoch(self, number: int) -> np.ndarray:
        """Update on the remaining batches of an epoch; return the samples of the last one."""
        size, rows = self.settings.batch_size, np.empty(0, np.int64)
        with closing(self._chunks(number, self._epoch.n_batches)) as chunks:
            for data, order in chunks:
                self.step.load(data, self.buffers)
                rows = order[-(len(order) % size or size) :].copy()  # a view would keep the order alive
                # The last batch of a chunk is a separate part: if it makes the weights non-finite, which the
                # next chunk detects, the weights before it are needed.
                is_whole = len(data) == self.passes.n_samples
                for part in [order] if is_whole else [order[: -len(rows)], rows]:
                    if len(part):
                        self._run_part(data, part)
        return rows

    def _run_part(self, data: Data, order: np.ndarray) -> None:
        """Update on a part of the batches of an epoch."""
        epoch, size = self._epoch, self.settings.batch_size
        epoch.begin_part(self._shares(order, data.row_weight))
        values = self.step.run_epoch(order, size, self.buffers, self._pause)
        epoch.end_part(values)
        if not np.isfinite(values[-1]):
            raise Diverged(float(values[-1]))
        if epoch.n_batches < self._n_batches:
            self._pause([])

    def _shares(self, order: np.ndarray, row_weight: np.ndarray | None) -> np.ndarray:
        """Return the weight of each batch in the mean; without sample weights it is cached."""
        if row_weight is not None:
            return batch_shares(order, self.settings.batch_size, row_weight)
        if len(order) not in self._sizes:
            self._sizes = {len(order): batch_shares(order, self.settings.batch_size, None)}
        return self._sizes[len(order)]

    def _pause(self, values: list[Any]) -> None:
        """Record that some batches are complete, and call ``pause`` of the observer from time to time."""
        state, n_parts = self._state, len(self._epoch.objectives)
        self._state = _LoopState(*state[:3], self.buffers.current, n_parts, values, len(values))
        if self._on_pause is None:
            return
        now = batch_timer.clock()
        if now - self._last_pause > PAUSE:
            self._last_pause = now
            self._on_pause(self.located)

    def _chunks(self, epoch: int, n_batches: int) -> Generator[Chunk, None, None]:
        """Yield the chunks of an epoch after ``n_batches`` batches."""
        with closing(self.passes.chunks(epoch, n_batches * self.settings.batch_size)) as chunks:
            while True:
                try:
                    chunk = next(chunks)
                except StopIteration:
                    return
                except Exception as error:
                    raise ReadingFailed(self.located()) from error
                yield chunk

    def _last_batch(self, epoch: int) -> np.ndarray:
        """Load the last chunk of an epoch, and return the samples of its last batch."""
        with closing(self._chunks(epoch, self._n_batches - 1)) as chunks:
            data, rows = next(chunks)
            self.step.load(data, self.buffers)
        return rows
