"""The training loop: epochs of batches, validation, and what to do when a loss is not finite."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..exceptions import ConvergenceError, warn_user
from ..learning_rates import Rates
from .base_step import BaseStep
from .batches import batch_sizes
from .buffers import CarriedBuffers, Data
from .full_batch import FullBatchStep
from .loop_records import LoopSettings, Observer, Snapshot, TrainingResult
from .monitor import Monitor, Validate
from .passes import MemoryPasses, Passes, Position, ReadingFailed, Unfinished, read_chunks
from .progress import progress_bar
from .solver_loop import run_full_batch

__all__ = ["LoopSettings", "TrainingResult", "run_training"]

Convert = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]


class _Diverged(Exception):
    """A loss, or a weight after the last batch, was not finite."""

    def __init__(self, value: float):
        super().__init__(value)
        self.value = value


def run_training(
    step: BaseStep | FullBatchStep,
    data: Data,
    weights: dict[str, np.ndarray],
    settings: LoopSettings,
    seed: int,
    *,
    shard: int = 0,
    passes: Passes | None = None,
    unfinished: Unfinished | None = None,
    past: Sequence[dict] = (),
    states: dict | None = None,
    validate: Validate | None = None,
    observer: Observer | None = None,
    convert: Convert | None = None,
) -> TrainingResult:
    """Train.

    Parameters
    ----------
    step : BaseStep or FullBatchStep
        How a batch updates the weights, or the objective of all rows.
    data : Data
        Rows, or the first ones of passes.
    weights : dict of str to ndarray
        Initial weights.
    settings : LoopSettings
        How long and in which order.
    seed : int
        Seed of the orders of the samples: that of an epoch depends on seed, shard and epoch alone.
    shard : int, default=0
        Number of the part of the data that these samples are.
    passes : Passes, default=None
        Where the rows of each epoch come from; seed and shard have no effect then.
    unfinished : Unfinished, default=None
        The first epoch, where it begins in its middle.
    past : sequence of dict, default=()
        Records of the epochs before it, where they are of the same training.
    states : dict, default=None
        States of the update to go on from.
    validate : callable, default=None
        Takes weights, returns loss and score on other rows.
    observer : Observer, default=None
        Hears of every epoch, and may end the training.
    convert : callable, default=None
        Returns the weights of what is trained, where these are a point in other coordinates.

    Returns
    -------
    TrainingResult
        Weights, states and losses.

    Raises
    ------
    ConvergenceError
        If a loss is not finite and ``settings.exc`` is True.
    ReadingFailed
        If a chunk of passes cannot be read; it has what was learned before.
    """
    if isinstance(step, FullBatchStep):
        return run_full_batch(step, data, weights, settings, validate, observer)
    rows: Passes = passes or MemoryPasses(data, seed if settings.shuffle else None, shard)
    sizes = batch_sizes(rows.n_samples, settings.batch_size)
    buffers = step.start(data, sizes, weights, states, rows.n_samples)
    step.checks_loss = settings.first_epoch == 0
    recent: deque[float] = deque(maxlen=10)
    rates, rate = Rates(step.task.update.learning_rate, settings.past_losses), float("nan")
    with progress_bar(
        settings.max_iter, settings.description, bool(settings.verbose), settings.stream
    ) as advance:
        best = None if unfinished is None else unfinished.best
        monitor = Monitor(settings, validate, observer, advance, past, best)
        try:
            for epoch in range(settings.first_epoch, settings.first_epoch + settings.max_iter):
                monitor.begin()
                rate = rates.of(epoch)
                step.set_rate(rate)
                begun = _Epoch(epoch) if unfinished is None else _Epoch.after(unfinished)
                unfinished = None
                loss, last = begun.run(step, rows, buffers, settings.batch_size, recent)
                rates.note(loss)
                if monitor.end(loss, rate, lambda: _snapshot(buffers, convert)):
                    break
            _check_last(step, buffers, last)
        except _Diverged as diverged:
            _report(diverged.value, recent, rate, settings, monitor.result)
        except ReadingFailed as failed:
            failed.result = monitor.result
            failed.result.keep(_snapshot(buffers, convert))
            raw = _snapshot(buffers).raw
            failed.result.unfinished = begun.unfinished(rows.n_samples, raw, monitor.best)
            raise
        else:
            monitor.check_end()
    return monitor.finish(_snapshot(buffers, convert))


def _snapshot(buffers: CarriedBuffers, convert: Convert | None = None) -> Snapshot:
    values = buffers.read()
    return Snapshot(
        {weight: value for (weight, state), value in values.items() if state is None},
        {(weight, state): value for (weight, state), value in values.items() if state is not None},
        convert,
    )


class _Epoch:
    """A pass over the rows of an epoch, and what it measured so far."""

    def __init__(self, number: int):
        self._position = Position(number)
        self._values: list[np.ndarray] = []
        self._shares: list[np.ndarray] = []

    @classmethod
    def after(cls, unfinished: Unfinished) -> _Epoch:
        """Return the rest of an epoch."""
        rest = cls(unfinished.position.epoch)
        rest._position = unfinished.position
        rest._values, rest._shares = [unfinished.values], [unfinished.shares]
        return rest

    def run(
        self, step: BaseStep, passes: Passes, buffers: CarriedBuffers, size: int, recent: deque[float]
    ) -> tuple[float, np.ndarray]:
        """Update on all batches; return the mean loss and the samples of the last batch."""
        last = np.empty(0, np.int64)
        with closing(read_chunks(passes, self._position)) as chunks:
            for data, order in chunks:
                step.load(data, buffers)
                last = order[-(len(order) % size or size) :]
                # The weights before the last batch of a chunk are needed once its loss is not finite, which
                # is seen in the next chunk.
                parts = [order] if len(data) == passes.n_samples else [order[: -len(last)], last]
                for part in filter(len, parts):
                    self._run(step, data, part, buffers, size, recent)
                self._position = Position(self._position.epoch, self._position.chunk + 1)
        values, shares = np.concatenate(self._values), np.concatenate(self._shares)
        return float(np.dot(values, shares) / shares.sum()), last

    def _run(
        self,
        step: BaseStep,
        data: Data,
        order: np.ndarray,
        buffers: CarriedBuffers,
        size: int,
        recent: deque[float],
    ) -> None:
        values = step.run_epoch(order, size, buffers)
        recent.extend(values[-10:].tolist())
        if not np.isfinite(values[-1]):
            raise _Diverged(float(values[-1]))
        self._values.append(values)
        starts = np.arange(0, len(order), size)
        if data.sample_weight is None:
            self._shares.append(np.diff(starts, append=len(order)))
        else:
            self._shares.append(np.add.reduceat(data.sample_weight[order], starts, dtype=np.float64))

    def unfinished(self, n_samples: int, raw: dict[str, np.ndarray], best: Snapshot | None) -> Unfinished:
        """Return what is needed to go on with the epoch."""
        values = np.concatenate([np.empty(0), *self._values])
        shares = np.concatenate([np.empty(0), *self._shares])
        return Unfinished(self._position, values, shares, n_samples, raw, best)


def _check_last(step: BaseStep, buffers: CarriedBuffers, rows: np.ndarray) -> None:
    """Look at the weights after the last batch, whose loss nobody computed: once more on its rows."""
    value = step.run(rows, buffers)  # what it writes is not kept
    if not np.isfinite(value) or not all(np.isfinite(w).all() for w in _snapshot(buffers).raw.values()):
        buffers.step_back(1)
        raise _Diverged(value)


def _report(
    value: float, recent: deque[float], rate: float, settings: LoopSettings, result: TrainingResult
) -> None:
    epoch = settings.first_epoch + min(result.n_iter + 1, settings.max_iter)
    message = (
        f"The training stopped being finite (loss {value}) in epoch {epoch}, at learning rate {rate:.6g}; "
        f"last losses: {', '.join(f'{loss:.6g}' for loss in recent)}. Lower the learning rate, scale the "
        "features or the labels"
    )
    if settings.exc:
        raise ConvergenceError(
            message + ", or keep the last finite weights with exc=False." + settings.advice(),
            losses=recent,
            rate=rate,
        )
    warn_user(message + "; the last finite weights are kept." + settings.advice(), ConvergenceWarning)
