"""The training loop: epochs of batches, validation, and what to do when a loss is not finite."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..exceptions import ConvergenceError, warn_user
from ..learning_rates import Rates
from .base_step import BaseStep
from .batches import batch_sizes, epoch_order
from .buffers import CarriedBuffers, Data
from .full_batch import FullBatchStep
from .loop_records import LoopSettings, Observer, Snapshot, TrainingResult
from .monitor import Monitor, Validate
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

    Returns
    -------
    TrainingResult
        Weights, states and losses.

    Raises
    ------
    ConvergenceError
        If a loss is not finite and ``settings.exc`` is True.
    """
    if isinstance(step, FullBatchStep):
        return run_full_batch(step, data, weights, settings, validate, observer)
    buffers = step.start(data, batch_sizes(len(data), settings.batch_size), weights, states)
    step.checks_loss = settings.first_epoch == 0
    recent: deque[float] = deque(maxlen=10)
    rates, rate = Rates(step.task.update.learning_rate, settings.past_losses), float("nan")
    with progress_bar(
        settings.max_iter, settings.description, bool(settings.verbose), settings.stream
    ) as advance:
        monitor = Monitor(settings, validate, observer, advance)
        try:
            for epoch in range(settings.first_epoch, settings.first_epoch + settings.max_iter):
                monitor.begin()
                rate = rates.of(epoch)
                step.set_rate(rate)
                order = epoch_order(len(data), seed if settings.shuffle else None, epoch, shard)
                loss, last = _run_epoch(step, data, buffers, settings.batch_size, order, recent)
                rates.note(loss)
                if monitor.end(loss, rate, lambda: _snapshot(buffers, convert)):
                    break
            _check_last(step, buffers, last)
        except _Diverged as diverged:
            _report(diverged.value, recent, rate, settings, monitor.result)
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


def _run_epoch(
    step: BaseStep,
    data: Data,
    buffers: CarriedBuffers,
    batch_size: int,
    order: np.ndarray,
    recent: deque[float],
) -> tuple[float, np.ndarray]:
    """Visit the samples in an order; return the mean loss and the samples of the last batch."""
    values = step.run_epoch(order, batch_size, buffers)
    recent.extend(values[-10:].tolist())
    if not np.isfinite(values[-1]):
        raise _Diverged(float(values[-1]))
    starts = np.arange(0, len(order), batch_size)
    if data.sample_weight is None:
        shares = np.diff(starts, append=len(order))
    else:
        shares = np.add.reduceat(data.sample_weight[order], starts, dtype=np.float64)
    return float(np.dot(values, shares) / shares.sum()), order[starts[-1] :]


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
