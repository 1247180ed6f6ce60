"""Validation, early stopping, history and progress at the end of every epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..comparison.evidence import improves
from ..exceptions import ConvergenceError, warn_user
from .settings import LoopSettings, Measured, Observer, Validate
from .state import Best, Evaluations, States, TrainingState, Weights

__all__ = ["Epoch", "Mark", "Monitor"]

#: Objectives of an epoch that has not begun.
NO_OBJECTIVES = np.zeros(0)


class Epoch:
    """Objectives of an epoch, as arrays of several batches, and their weights in the mean."""

    def __init__(self, objectives: np.ndarray = NO_OBJECTIVES, weights: np.ndarray = NO_OBJECTIVES):
        self.objectives, self.n_batches = [objectives.astype(np.float64)], len(objectives)
        self._weights = [weights]

    def begin_part(self, weights: np.ndarray) -> None:
        """Add the weights of the next batches."""
        self._weights.append(weights)

    def end_part(self, objectives: np.ndarray) -> None:
        """Add the objectives of these batches."""
        self.objectives.append(objectives)
        self.n_batches += len(objectives)

    def measured(
        self, n_parts: int | None = None, others: Sequence[Any] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives of the first parts, followed by ``others``, and their weights."""
        values = np.concatenate([*self.objectives[:n_parts], *map(np.atleast_1d, others)])
        return values, np.concatenate(self._weights)[: len(values)]


@dataclass
class Mark:
    """Progress: complete epochs, and a part of the current one.

    It or its ``part`` is replaced in one assignment, so that the state is consistent at any interrupt.
    """

    n_epochs: int
    best: Best
    recent: list[float]  # objectives of the last batches before the current epoch
    epoch: Epoch
    #: Copy of the buffers with the weights, and the number of parts and batches that are complete: those of
    #: the last part, which is not, have these objectives.
    part: tuple[int | None, int, Sequence[Any], int] = (None, 1, (), 0)


class Monitor:
    """Progress of a training from a state: history, validation, early stopping and the best weights.

    ``read`` returns the weights that the next batch updates and the states of the update, of a copy of the
    buffers; ``advance`` is called with the record of each epoch.
    """

    def __init__(
        self,
        settings: LoopSettings,
        state: TrainingState,
        read: Callable[[int | None], tuple[Weights, States]],
        validate: Validate | None = None,
        observer: Observer | None = None,
        advance: Callable[[dict], None] | None = None,
    ):
        self._settings, self._read = settings, read
        self._validate, self._observer, self._advance = validate, observer, advance
        self._begun = replace(state, best_epoch=None, start_kept=False)
        #: Returns the evaluations of a solver so far.
        self.evaluations: Callable[[], Evaluations | None] = lambda: None
        self._sign = -1.0 if settings.watch == "validation_score" else 1.0
        is_stream, best = settings.stream is not None, state.best
        self._replayed: list[dict] = []
        self.history = list(state.history)
        if state.evaluations is not None:  # a solver is run again with the recorded objectives
            self._replayed, self.history, best = self.history, [], Best()
        elif is_stream and best.stopped:
            best = Best()
        self.mark = Mark(len(self.history), best, state.recent, Epoch(state.objectives, state.shares))
        if advance is not None and not is_stream:
            for record in self.history:
                advance(record)

    @property
    def stopped(self) -> bool:
        """Whether early stopping or the observer ended the training."""
        return self.mark.best.stopped

    @property
    def losses(self) -> list[float]:
        """Mean loss of each epoch."""
        return [record["loss"] for record in self.history if record["loss"] is not None]

    def state(self, copy: int | None = None) -> TrainingState:
        """Return the last consistent state, or that of another copy of the buffers."""
        mark = self.mark
        known, n_parts, values, n_values = mark.part
        objectives, weights = mark.epoch.measured(n_parts, values[:n_values])
        state = replace(
            self._begun,
            history=self.history[: mark.n_epochs],
            objectives=objectives,
            shares=weights,
            recent=mark.recent,
            best=mark.best,
            evaluations=self.evaluations(),
        )
        return state.at(*self._read(known if copy is None else copy))

    def finish(self, copy: int | None = None) -> TrainingState:
        """Return the state of a complete training, with the best weights if they are kept."""
        state, best, is_stream = self.state(copy), self.mark.best, self._settings.stream is not None
        state = state.without_progress()
        if best.epoch is not None and (best.stopped or not is_stream):
            state = replace(state.at(best.updated, best.states), best_epoch=best.epoch)
        return replace(state, best=best) if is_stream else state

    @property
    def _is_replayed(self) -> bool:
        """Whether the current epoch was recorded by an earlier run."""
        return len(self.history) < len(self._replayed)

    def begin(self, since: float | None = None) -> None:
        """Begin an epoch, now or at an earlier time of ``perf_counter``."""
        if self._observer is not None and not self._is_replayed:
            self._observer.begin(len(self.history))
        self._begun_at = time.perf_counter() if since is None else since

    def end(
        self, loss: float, rate: float | None, recent: list[float] | None = None, copy: int | None = None
    ) -> bool:
        """End an epoch, whose weights are in a copy of the buffers; return whether to stop the training."""
        seconds, number = time.perf_counter() - self._begun_at, len(self.history) + 1
        current = cache(lambda: self._begun.at(*self._read(copy)))
        is_replayed, measured = self._is_replayed, None
        if self._validate is not None and number % self._settings.validation_every == 0 and not is_replayed:
            measured = self._validate(current().weights)
        record = self._replayed[number - 1] if is_replayed else self._record(loss, rate, seconds, measured)
        self.history.append(record)
        if self._advance is not None:
            self._advance(record)
        best = self._watched(record, current)
        self.mark = Mark(number, best, recent or [], Epoch(), (copy, 1, (), 0))
        if is_replayed or self._observer is None:
            return best.stopped
        if self._observer.end(record, self.state):
            if self._settings.stream is None:
                self.mark = replace(self.mark, best=replace(best, stopped=True))
            return True
        return best.stopped

    def _record(
        self, loss: float, rate: float | None, seconds: float, measured: Measured | None
    ) -> dict[str, Any]:
        return {
            "epoch": len(self.history) + 1,
            "loss": loss,
            "validation_loss": None if measured is None else measured.loss,
            "validation_score": None if measured is None else measured.score,
            "rate": rate,
            "seconds": seconds,
            **self._settings.columns(),
        }

    def _watched(self, record: dict, current: Callable[[], TrainingState]) -> Best:
        """Return the best weights after an epoch, and whether early stopping ends the training."""
        settings, best = self._settings, self.mark.best
        if settings.watch is None or record[settings.watch] is None:
            return best
        value = self._sign * record[settings.watch]
        if math.isnan(value):
            best = self._failed(f"The {settings.watch} is nan in epoch {record['epoch']}")
        count = 0 if improves(best.lowest - settings.tol - value) else best.without_change + 1
        if improves(best.lowest - value):
            best = replace(best, lowest=value)
            if settings.keeps_best:
                state = current()
                best = replace(best, epoch=record["epoch"], updated=state.points, states=state.states)
        return replace(best, without_change=count, stopped=best.stopped or count >= settings.n_iter_no_change)

    def _failed(self, reason: str) -> Best:
        """Raise an error or warn that the best weights are unknown."""
        message = f"{reason}, so the best weights are unknown. Check the validation data and scoring"
        if self._settings.exc:
            raise ConvergenceError(message + ", or keep the last weights with exc=False.")
        warn_user(message + "; the best weights so far, or the last ones, are kept.", ConvergenceWarning)
        return replace(self.mark.best, failed=True, stopped=True)

    def check_best(self) -> None:
        """Raise an error or warn if the best weights were to be kept, but no validation was finite."""
        watch, best = self._settings.watch, self.mark.best
        if watch is None or not self._settings.keeps_best or self._settings.stream is not None:
            return
        if best.epoch is None and not best.failed and any(r[watch] is not None for r in self.history):
            self.mark = replace(self.mark, best=self._failed(f"The {watch} was never finite"))

    def check_end(self) -> None:
        """Warn if max_iter was reached before convergence, or no validation was finite."""
        settings = self._settings
        self.check_best()
        if settings.watch is not None and settings.stream is None and not self.stopped:
            warn_user(
                f"The training reached max_iter={settings.max_iter} epochs before the {settings.watch} "
                f"stopped improving by tol={settings.tol:g} for n_iter_no_change="
                f"{settings.n_iter_no_change} times in a row. Increase max_iter, tol or the learning rate.",
                ConvergenceWarning,
            )
