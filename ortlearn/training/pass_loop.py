"""The training loop over passes: the rows of an epoch come in chunks, which are read meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import closing

import numpy as np

from ..learning_rates import Rates
from .base_step import BaseStep
from .batches import batch_shares, batch_sizes
from .buffers import CarriedBuffers, Data
from .divergence import Convert, Diverged, check_last, report, snapshot_of
from .loop_records import LoopSettings, Observer, Snapshot, TrainingResult
from .monitor import Monitor, Validate
from .passes import Passes, PassPosition, ReadingFailed, Unfinished, read_chunks
from .progress import progress_bar

__all__ = ["run_passes"]


def run_passes(
    step: BaseStep,
    data: Data,
    weights: dict[str, np.ndarray],
    settings: LoopSettings,
    passes: Passes,
    *,
    unfinished: Unfinished | None = None,
    past: Sequence[dict] = (),
    states: dict | None = None,
    validate: Validate | None = None,
    observer: Observer | None = None,
    convert: Convert | None = None,
) -> TrainingResult:
    """Train on rows that come in chunks.

    Parameters
    ----------
    step : BaseStep
        How a batch updates the weights.
    data : Data
        The first rows of the passes.
    weights : dict of str to ndarray
        Initial weights.
    settings : LoopSettings
        How long.
    passes : Passes
        Where the rows of each epoch come from.
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
        If a chunk cannot be read; it has what was learned before.
    """
    sizes = batch_sizes(passes.n_samples, settings.batch_size)
    buffers = step.start(data, sizes, weights, states, passes.n_samples)
    step.checks_loss = settings.first_epoch == 0
    recent: deque[float] = deque(maxlen=10)
    rates, rate = Rates(step.task.update.learning_rate, settings.past_losses), float("nan")
    with progress_bar(
        settings.max_iter, settings.description, bool(settings.verbose), settings.stream
    ) as advance:
        best = None
        if unfinished is not None and unfinished.best_weights:
            best = Snapshot(unfinished.best_weights, unfinished.best_states, convert)
        monitor = Monitor(settings, validate, observer, advance, past=past, best=best)
        try:
            for epoch in range(settings.first_epoch, settings.first_epoch + settings.max_iter):
                monitor.begin()
                rate = rates.of(epoch)
                step.set_rate(rate)
                begun = _Epoch(epoch) if unfinished is None else _Epoch.after(unfinished)
                unfinished = None
                loss, last = begun.run(step, passes, buffers, settings.batch_size, recent)
                rates.note(loss)
                if monitor.end(loss, rate, lambda: snapshot_of(buffers, convert)):
                    break
            check_last(step, buffers, last)
        except Diverged as diverged:
            report(diverged.value, recent, rate, settings, monitor.result)
        except ReadingFailed as failed:
            failed.result = monitor.result
            failed.result.keep(snapshot_of(buffers, convert))
            raw = snapshot_of(buffers).raw
            failed.result.unfinished = begun.unfinished(passes.n_samples, raw, monitor.best)
            raise
        else:
            monitor.check_end()
    return monitor.finish(snapshot_of(buffers, convert))


class _Epoch:
    """A pass over the rows of an epoch, and what it measured so far."""

    def __init__(self, number: int):
        self._position = PassPosition(number)
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
                self._position = PassPosition(self._position.epoch, self._position.chunk + 1)
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
            raise Diverged(float(values[-1]))
        self._values.append(values)
        self._shares.append(batch_shares(order, size, data.row_weight))

    def unfinished(self, n_samples: int, raw: dict[str, np.ndarray], best: Snapshot | None) -> Unfinished:
        """Return what is needed to continue the epoch."""
        values = np.concatenate([np.empty(0), *self._values])
        shares = np.concatenate([np.empty(0), *self._shares])
        kept = ({}, {}) if best is None else (best.raw, best.states)
        return Unfinished(self._position, values, shares, n_samples, raw, *kept)
