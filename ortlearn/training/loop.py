"""The training loop: epochs of batches, validation, and what to do when a loss is not finite."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from ..learning_rates import Rates
from . import batch_timer
from .base_step import BaseStep
from .batches import batch_shares, batch_sizes, epoch_order
from .buffers import CarriedBuffers, Data
from .divergence import Convert, Diverged, check_last, report, snapshot_of
from .full_batch import FullBatchStep
from .loop_records import LoopSettings, Observer, Snapshot, TrainingResult
from .monitor import Monitor, Validate
from .positions import Interrupted, Position
from .progress import progress_bar
from .solver_loop import run_full_batch

__all__ = ["LoopSettings", "TrainingResult", "run_training"]

#: Seconds between two times that an observer hears of an epoch in progress.
PAUSE = 0.05
#: Objectives of an epoch that has not begun.
NONE = np.zeros(0)


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
) -> TrainingResult:
    """Train.

    Parameters
    ----------
    step : BaseStep or FullBatchStep
        How a batch updates the weights, or the objective of all rows.
    data : Data
        Rows.
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
    """
    if isinstance(step, FullBatchStep):
        return run_full_batch(step, data, weights, settings, validate, observer, position=position)
    if position is not None:
        weights, states = position.weights, position.states
    buffers = step.start(data, batch_sizes(len(data), settings.batch_size), weights, states)
    step.checks_loss = settings.first_epoch == 0 and position is None
    with progress_bar(
        settings.max_iter, settings.description, bool(settings.verbose), settings.stream
    ) as advance:
        monitor = Monitor(settings, validate, observer, advance, position, convert)
        run = _Run(step, data, buffers, settings, monitor, observer, convert, position)
        try:
            run.train(seed if settings.shuffle else None, shard)
        except Diverged as diverged:
            report(diverged.value, run.recent, run.rate, settings, monitor.result)
        except KeyboardInterrupt as interrupt:
            raise Interrupted(run.located(), *interrupt.args) from interrupt
        else:
            monitor.check_end()
    return monitor.finish(snapshot_of(buffers, convert))


class _Place(NamedTuple):
    """Where a loop is: number of the epoch, its objectives so far, and the copy of weights and states."""

    epoch: int
    before: np.ndarray
    values: list[Any]
    n_values: int
    copy: int
    recent: list[float]

    def objectives(self) -> np.ndarray:
        """Return the objectives of the batches of the epoch, those before it was resumed included."""
        return np.concatenate([self.before, *map(np.atleast_1d, self.values[: self.n_values])])


def _with_position(snapshot: Snapshot, position: Position, place: Any) -> Snapshot:
    """Return a snapshot with its position, of which a monitor knows one part and a place the other."""
    position = replace(
        position,
        objectives=place.objectives(),
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
        data: Data,
        buffers: CarriedBuffers,
        settings: LoopSettings,
        monitor: Monitor,
        observer: Observer | None,
        convert: Convert | None,
        position: Position | None,
    ):
        self.step, self.data, self.buffers = step, data, buffers
        self.settings, self.monitor, self.convert = settings, monitor, convert
        self.rate = float("nan")
        known = position or Position()
        self.recent: deque[float] = deque(known.recent, maxlen=10)
        self._done = known.objectives
        self._pause_of = getattr(observer, "pause", None)
        self._paused = batch_timer.clock()
        self._place = _Place(monitor.result.n_iter, self._done, [], 0, buffers.current, list(self.recent))
        monitor.locate = _with_position

    def located(self) -> Snapshot:
        """Return weights, states and position of the last place."""
        place, position = self._place, self.monitor.position()
        if place.epoch < position.n_epochs:  # the interrupt came when an epoch had just ended
            place = cast(_Place, self.monitor.place)
        return _with_position(snapshot_of(self.buffers, self.convert, place.copy), position, place)

    def train(self, seed: int | None, shard: int) -> None:
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
            order = epoch_order(len(self.data), seed, epoch, shard)
            loss = self._run_epoch(order)
            rates.note(loss)
            number = monitor.result.n_iter + 1
            place = _Place(number, NONE, [], 0, self.buffers.current, list(self.recent))
            stops = monitor.end(loss, self.rate, lambda: snapshot_of(self.buffers, self.convert), place)
            self._place = place
            if stops:
                break
        if not epochs:  # it was resumed after its last one
            last = max(first - 1, 0)
            self.step.set_rate(rates.of(last))
            order = epoch_order(len(self.data), seed, last, shard)
        self._check_last(order)

    def _run_epoch(self, order: np.ndarray) -> float:
        """Visit the samples in an order, but for those that were visited before; return the mean loss."""
        size, done = self.settings.batch_size, self._done
        values = self.step.run_epoch(order[len(done) * size :], size, self.buffers, self._pause)
        if len(done):
            values, self._done = np.concatenate([done.astype(values.dtype), values]), NONE
        self.recent.extend(values[-10:].tolist())
        if not np.isfinite(values[-1]):
            raise Diverged(float(values[-1]))
        shares = batch_shares(order, size, self.data.row_weight)
        return float(np.dot(values, shares) / shares.sum())

    def _pause(self, values: list[Any]) -> None:
        """Take note that a part of an epoch is done, and tell the observer now and then."""
        before = self._place
        place = before.epoch, self._done, values, len(values), self.buffers.current, before.recent
        self._place = _Place(*place)
        now = batch_timer.clock()
        if self._pause_of is not None and now - self._paused > PAUSE:
            self._paused = now
            self._pause_of(self.located)

    def _check_last(self, order: np.ndarray) -> None:
        """Look at the weights after the last batch, whose loss nobody computed: once more on its rows."""
        first = (len(order) - 1) // self.settings.batch_size * self.settings.batch_size
        check_last(self.step, self.buffers, order[first:])
