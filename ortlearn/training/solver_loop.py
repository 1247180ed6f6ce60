"""The loop of a solver, which asks for the objective of all rows as often as it likes."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..exceptions import ConvergenceError, warn_user
from ..learning_rates import BaseSolver
from .buffers import Data
from .full_batch import FullBatchStep
from .loop_records import LoopSettings, Observer, Snapshot, TrainingResult
from .monitor import Monitor, Validate
from .progress import progress_bar

__all__ = ["run_full_batch"]


class _NotFinite(Exception):
    """The objective stopped being finite."""


class _Stopped(Exception):
    """The training is to end."""


class _Run:
    """One training: the objective for a solver, and the last weights at which it was finite."""

    def __init__(self, step: FullBatchStep, monitor: Monitor, start: np.ndarray):
        self.step = step
        self.monitor = monitor
        self.best = start
        self._last: tuple[np.ndarray, tuple[float, np.ndarray]] | None = None
        self._since = time.perf_counter()

    @property
    def snapshot(self) -> Snapshot:
        """The last weights at which the objective was finite."""
        return Snapshot(self.step.unpack(self.best), {})

    def __call__(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """Return objective and gradient; asking twice for the same weights costs nothing."""
        if self._last is None or not np.array_equal(self._last[0], vector):
            self._last = np.array(vector), self.step.evaluate(vector)
        value, gradient = self._last[1]
        return value, gradient.copy()

    @property
    def has_kinks(self) -> bool:
        """Whether the objective has no gradient at some places."""
        return self.step.has_kinks

    @property
    def lower(self) -> np.ndarray | None:
        """Lower bounds of the weights."""
        return self.step.lower

    def rounded(self, width: float) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """Return the objective with its kinks rounded."""
        return lambda vector: self.step.evaluate(vector, width)

    def accept(self, vector: np.ndarray) -> float:
        """Keep weights, if their objective is finite, and return it."""
        value = self(vector)[0]
        if not np.isfinite(value):
            raise _NotFinite(f"{value}")
        self.best = np.array(vector)
        return value

    def note(self, vector: np.ndarray) -> None:
        """Take note of the weights after an iteration."""
        value = self.accept(vector)
        self.monitor.begin(self._since)  # only now is it known that there is an iteration
        if self.monitor.end(value, None, lambda: self.snapshot):
            raise _Stopped
        self._since = time.perf_counter()


def run_full_batch(
    step: FullBatchStep,
    data: Data,
    weights: dict[str, np.ndarray],
    settings: LoopSettings,
    validate: Validate | None = None,
    observer: Observer | None = None,
) -> TrainingResult:
    """Train by a solver.

    Parameters
    ----------
    step : FullBatchStep
        Objective and gradient.
    data : Data
        Rows.
    weights : dict of str to ndarray
        Initial weights.
    settings : LoopSettings
        How long, and what to do with an objective that is not finite.
    validate : callable, default=None
        Takes weights, returns loss and score on other rows.
    observer : Observer, default=None
        Hears of every iteration, and may end the training.

    Returns
    -------
    TrainingResult
        Weights, and the objective after each iteration.

    Raises
    ------
    ConvergenceError
        If the objective is not finite and ``settings.exc`` is True.
    """
    solver = step.task.update.learning_rate
    assert isinstance(solver, BaseSolver)
    step.start(data, weights)
    start = step.pack(weights)
    precision = float(np.finfo(step.task.graph.dtype).eps)
    with progress_bar(settings.max_iter, settings.description, bool(settings.verbose)) as advance:
        monitor = Monitor(settings, validate, observer, advance)
        run = _Run(step, monitor, start)
        try:
            run.accept(start)
            found = solver.minimize(run, start, settings.max_iter, run.note, precision)
            run.accept(found.weights)
            if not found.converged:
                warn_user(
                    f"{type(solver).__name__} stopped after {monitor.result.n_iter} iterations: "
                    f"{found.message}. Increase max_iter, or scale the features.",
                    ConvergenceWarning,
                )
        except _Stopped:
            pass
        except _NotFinite as error:
            _report(f"{error}", monitor.result.train_losses, settings)
        monitor.check_best()
    return monitor.finish(run.snapshot)


def _report(value: str, past: list[float], settings: LoopSettings) -> None:
    losses = past[-10:]
    message = (
        f"The objective is {value} after {len(past)} iterations; last ones: "
        f"{', '.join(f'{loss:.6g}' for loss in losses) or 'none'}. Scale the features or the labels"
    )
    if settings.exc:
        kept = ", or keep the last finite weights with exc=False."
        raise ConvergenceError(message + kept + settings.advice(), losses=losses)
    warn_user(message + "; the last finite weights are kept." + settings.advice(), ConvergenceWarning)
