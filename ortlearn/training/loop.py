"""The training loop: epochs of batches, validation, and what to do when a loss is not finite."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from ..learning_rates import Rates
from . import batch_timer
from .base_step import BaseStep
from .batches import ORDER_VERSION, batch_shares, batch_sizes
from .buffers import CarriedBuffers, Data
from .divergence import Convert, Diverged, check_last, report, snapshot_of
from .full_batch import FullBatchStep
from .loop_records import LoopSettings, Observer, Snapshot, TrainingResult
from .monitor import Monitor, Validate
from .passes import Chunk, Passes, PassesInMemory
from .positions import Interrupted, Position, ReadingFailed
from .progress import progress_bar
from .solver_loop import run_full_batch

__all__ = ["LoopSettings", "TrainingResult", "run_training"]

#: Seconds between two times that an observer hears of an epoch in progress.
PAUSE = 0.05
#: Objectives of an epoch that has not begun.
NONE = np.zeros(0)
#: Objectives that a message about a loss that is not finite names.
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
    """Train.

    Parameters
    ----------
    step : BaseStep or FullBatchStep
        How a batch updates the weights, or the objective of all rows.
    data : Data
        Rows; some of them where ``passes`` are given.
    weights : dict of str to ndarray
        Initial weights.
    settings : LoopSettings
        How long and in which order.
    seed : int
        Seed of the orders of the samples: that of an epoch depends on seed, shard and epoch alone.
    shard : int, default=0
        Number of the part of the data that these samples are.
    states : dict, default=None
        States of the update to go on from.
    validate : callable, default=None
        Takes weights, returns loss and score on other rows.
    observer : Observer, default=None
        Hears of every epoch, and may end the training.
    convert : callable, default=None
        Returns the weights of what is trained, where these are a point in other coordinates.
    position : Position, default=None
        Where to continue a training of the same step, data, settings and seed; ``weights`` and ``states`` are
        those of its beginning.
    passes : Passes, default=None
        Rows of every epoch, with seed and shard of their own; ``data`` by default.

    Returns
    -------
    TrainingResult
        Weights, states and losses.

    Raises
    ------
    ConvergenceError
        If a loss is not finite and ``settings.exc`` is True.
    Interrupted
        At a Ctrl-C, a KeyboardInterrupt with what the training has reached.
    ReadingFailed
        If the next rows of ``passes`` cannot be read, with what the training has reached.
    """
    if isinstance(step, FullBatchStep):
        return run_full_batch(step, data, weights, settings, validate, observer, position=position)
    if position is not None:
        weights, states = position.weights, position.states
    if passes is None:
        version = ORDER_VERSION if position is None else position.order_version
        passes = PassesInMemory(data, seed if settings.shuffle else None, shard, version)
    sizes = batch_sizes(passes.n_samples, settings.batch_size)
    buffers = step.start(data, sizes, weights, states, passes.n_samples)
    step.checks_loss = settings.first_epoch == 0 and position is None
    with progress_bar(
        settings.max_iter, settings.description, bool(settings.verbose), settings.stream
    ) as advance:
        monitor = Monitor(settings, validate, observer, advance, position, convert)
        run = _Run(step, passes, buffers, settings, monitor, observer, convert, position)
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
    """Objectives of an epoch, in arrays of some batches each, and what these count in the mean."""

    def __init__(self, position: Position | None = None):
        known = NONE if position is None else position.objectives.astype(np.float64)
        self.objectives, self.n_batches = [known], len(known)
        self._shares = [NONE if position is None else position.shares]

    def begin_part(self, shares: np.ndarray) -> None:
        """Take note of what the next batches count."""
        self._shares.append(shares)

    def end_part(self, objectives: np.ndarray) -> None:
        """Take note of their objectives."""
        self.objectives.append(objectives)
        self.n_batches += len(objectives)

    def measured(
        self, n_parts: int | None = None, others: Sequence[Any] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives of some parts, and then others, with their shares."""
        values = np.concatenate([*self.objectives[:n_parts], *map(np.atleast_1d, others)])
        return values, np.concatenate(self._shares)[: len(values)]


class _Place(NamedTuple):
    """Where a loop is: complete epochs and their last objectives, the epoch in progress, the copy to update.

    Of the epoch, some parts are complete, and of the next one as many batches as there are values.
    """

    n_epochs: int
    recent: list[float]
    epoch: _Epoch
    copy: int
    n_parts: int = 1
    values: list[Any] | None = None
    n_values: int = 0

    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives of the epoch and their shares."""
        return self.epoch.measured(self.n_parts, (self.values or [])[: self.n_values])


def _with_position(snapshot: Snapshot, position: Position, place: Any) -> Snapshot:
    """Return a snapshot with its position, of which a monitor knows one part and a place the other."""
    objectives, shares = place.measured()
    position = replace(
        position,
        objectives=objectives,
        shares=shares,
        recent=place.recent,
        weights=snapshot.raw,
        states=snapshot.states,
    )
    return replace(snapshot, position=position)


class _Run:
    """Epochs of batches, one after the other; its place is consistent whenever an interrupt comes."""

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
        self._pause_of = getattr(observer, "pause", None)
        self._paused = batch_timer.clock()
        self._epoch, recent = _Epoch(position), [] if position is None else position.recent
        self._place = _Place(monitor.result.n_iter, recent, self._epoch, buffers.current)
        monitor.locate = _with_position

    def located(self) -> Snapshot:
        """Return weights, states and position of the last place."""
        place, position = self._place, self.monitor.position()
        if place.n_epochs < position.n_epochs:  # the interrupt came when an epoch had just ended
            place = cast(_Place, self.monitor.place)
        return _with_position(snapshot_of(self.buffers, self.convert, place.copy), position, place)

    def recent(self, values: np.ndarray | None = None) -> list[float]:
        """Return the last objectives, those of the epoch included."""
        values = np.concatenate(self._epoch.objectives) if values is None else values
        return [*self._place.recent, *values[-RECENT:].tolist()][-RECENT:]

    def train(self) -> None:
        """Train up to the last epoch, or until the monitor stops; check what the last batch left."""
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
            place = _Place(monitor.result.n_iter + 1, self.recent(values), _Epoch(), self.buffers.current)
            stops = monitor.end(loss, self.rate, lambda: snapshot_of(self.buffers, self.convert), place)
            self._place, self._epoch = place, place.epoch
            if stops:
                break
        if not epochs:  # it was resumed after its last one
            last = max(first - 1, 0)
            self.step.set_rate(rates.of(last))
            rows = self._last_batch(last)
        check_last(self.step, self.buffers, rows)  # its loss, which nobody computed

    def _run_epoch(self, number: int) -> np.ndarray:
        """Update on the batches of an epoch that are left; return the rows of the last one."""
        size, rows = self.settings.batch_size, np.empty(0, np.int64)
        with closing(self._chunks(number, self._epoch.n_batches)) as chunks:
            for data, order in chunks:
                self.step.load(data, self.buffers)
                rows = order[-(len(order) % size or size) :].copy()  # a view would keep all of them
                # The weights before the last batch of a chunk are needed once its loss is not finite, which
                # is seen in the next chunk.
                is_whole = len(data) == self.passes.n_samples
                for part in [order] if is_whole else [order[: -len(rows)], rows]:
                    if len(part):
                        self._run_part(data, part)
        return rows

    def _run_part(self, data: Data, order: np.ndarray) -> None:
        """Update on some batches."""
        epoch, size = self._epoch, self.settings.batch_size
        epoch.begin_part(self._shares(order, data.row_weight))
        values = self.step.run_epoch(order, size, self.buffers, self._pause)
        epoch.end_part(values)
        if not np.isfinite(values[-1]):
            raise Diverged(float(values[-1]))
        if epoch.n_batches < self._n_batches:
            self._pause([])

    def _shares(self, order: np.ndarray, row_weight: np.ndarray | None) -> np.ndarray:
        """Return what each batch counts: without weights, the same in every epoch."""
        if row_weight is not None:
            return batch_shares(order, self.settings.batch_size, row_weight)
        if len(order) not in self._sizes:
            self._sizes = {len(order): batch_shares(order, self.settings.batch_size, None)}
        return self._sizes[len(order)]

    def _pause(self, values: list[Any]) -> None:
        """Take note that some batches are done, and tell the observer now and then."""
        place, n_parts = self._place, len(self._epoch.objectives)
        self._place = _Place(*place[:3], self.buffers.current, n_parts, values, len(values))
        if self._pause_of is None:
            return
        now = batch_timer.clock()
        if now - self._paused > PAUSE:
            self._paused = now
            self._pause_of(self.located)

    def _chunks(self, epoch: int, n_batches: int) -> Generator[Chunk, None, None]:
        """Yield the chunks of an epoch after some batches."""
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
        """Return the rows of the last batch of an epoch, which the step then holds."""
        with closing(self._chunks(epoch, self._n_batches - 1)) as chunks:
            data, rows = next(chunks)
            self.step.load(data, self.buffers)
        return rows
