"""Validation, early stopping, history and progress at the end of every epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..data.orders import ORDER_VERSION
from ..exceptions import ConvergenceError, warn_user
from .loop_records import Convert, LoopSettings, Measured, Observer, Snapshot, TrainingResult
from .positions import Position

__all__ = ["Monitor", "Validate"]

Validate = Callable[[dict[str, np.ndarray]], Measured]


class Monitor:
    """History of a training, validation, early stopping and the selection of the best weights.

    Parameters are those of :func:`run_training`; ``advance`` is called with the record of each epoch.
    """

    def __init__(
        self,
        settings: LoopSettings,
        validate: Validate | None = None,
        observer: Observer | None = None,
        advance: Callable[[dict], None] | None = None,
        position: Position | None = None,
        convert: Convert | None = None,
    ):
        self.result = TrainingResult()  # history so far; ``finish`` adds the weights
        self.stopped = False  # whether early stopping or the observer ended the training
        # Set by the loop: adds to a snapshot a position, with the state of the loop after the epoch.
        self.locate: Callable[[Snapshot, Position, Any], Snapshot] = lambda snapshot, *_: snapshot
        self._replayed: list[dict] = []
        self._settings = settings
        self._validate = validate
        self._observer = observer
        self._advance = advance
        self._sign = -1.0 if settings.watch == "validation_score" else 1.0
        self._lowest, self._without_change = math.inf, 0
        self._best: Snapshot | None = None
        self._failed = False
        self._order_version = ORDER_VERSION if position is None else position.order_version
        if position is not None and position.evaluations is not None:
            self._replayed = position.history  # a solver is run again with the recorded objectives
        elif position is not None:
            self._continue_from(position, convert)
        self._save_state(None)

    def _continue_from(self, position: Position, convert: Convert | None) -> None:
        self.result.history, self.result.best_epoch = list(position.history), position.best_epoch
        self._lowest, self._without_change = position.lowest, position.without_change
        self.stopped, self._failed = position.stopped, position.failed
        if position.best_weights:
            self._best = Snapshot(position.best_weights, position.best_states, convert)
        for record in position.history if self._advance is not None else ():
            self._advance(record)  # type: ignore[misc]

    def _save_state(self, loop_state: object) -> None:
        """Store the state after an epoch in one assignment, so that it is consistent at any interrupt."""
        result = self.result
        self._saved_state = (
            (result.n_iter, self._lowest, self._without_change, self._best, result.best_epoch),
            (self.stopped, self._failed),
            loop_state,
        )

    @property
    def loop_state(self) -> object:
        """State of the loop at the end of the last epoch."""
        return self._saved_state[2]

    def position(self) -> Position:
        """Return the position at the end of the last epoch, without weights and states."""
        (n_epochs, lowest, without_change, best, best_epoch), (stopped, failed), _ = self._saved_state
        return Position(
            n_epochs=n_epochs,
            history=self.result.history[:n_epochs],
            lowest=lowest,
            without_change=without_change,
            best_epoch=best_epoch,
            best_weights={} if best is None else best.raw,
            best_states={} if best is None else best.states,
            stopped=stopped,
            failed=failed,
            order_version=self._order_version,
        )

    @property
    def _is_replayed(self) -> bool:
        """Whether the current epoch was recorded by an earlier run."""
        return self.result.n_iter < len(self._replayed)

    def begin(self, since: float | None = None) -> None:
        """Begin an epoch, now or at an earlier time of ``perf_counter``."""
        if self._observer is not None and not self._is_replayed:
            self._observer.begin(self._settings.first_epoch + self.result.n_iter)
        self._begun = time.perf_counter() if since is None else since

    def end(
        self,
        loss: float,
        rate: float | None,
        snapshot: Callable[[], Snapshot],
        loop_state: object = None,
    ) -> bool:
        """End an epoch; return whether to stop the training."""
        seconds = time.perf_counter() - self._begun
        number = self.result.n_iter + 1
        taken: list[Snapshot] = []

        def current() -> Snapshot:
            if not taken:
                taken.append(snapshot())
            return taken[0]

        was_replayed, measured = self._is_replayed, None
        due = (self._settings.first_epoch + number) % self._settings.validation_every == 0
        if self._validate is not None and due and not was_replayed:
            measured = self._validate(current().weights)
        record = {
            "epoch": self._settings.first_epoch + number,
            "loss": loss,
            "validation_loss": None if measured is None else measured.loss,
            "validation_score": None if measured is None else measured.score,
            "rate": rate,
            "seconds": seconds,
            **self._settings.columns(),
        }
        if was_replayed:
            record = self._replayed[number - 1]
        self.result.history.append(record)
        if self._advance is not None:
            self._advance(record)
        self._watch(record, current)
        self._save_state(loop_state)
        if was_replayed or self._observer is None:
            return self.stopped
        if self._observer.end(record, lambda: self.locate(current(), self.position(), loop_state)):
            self.stopped = True
            self._save_state(loop_state)
        return self.stopped

    def _watch(self, record: dict, current: Callable[[], Snapshot | None]) -> None:
        settings = self._settings
        if settings.watch is None or record[settings.watch] is None:
            return
        value = self._sign * record[settings.watch]
        if math.isnan(value):
            self._fail(f"The {settings.watch} is nan in epoch {record['epoch']}")
        self._without_change = 0 if value < self._lowest - settings.tol else self._without_change + 1
        if value < self._lowest:
            self._lowest = value
            if settings.keeps_best:
                self._best, self.result.best_epoch = current(), record["epoch"]
        if self._without_change >= settings.n_iter_no_change:
            self.stopped = True

    def _fail(self, reason: str) -> None:
        self._failed = True
        message = f"{reason}, so the best weights are unknown. Check the validation data and scoring"
        if self._settings.exc:
            raise ConvergenceError(message + ", or keep the last weights with exc=False.")
        warn_user(message + "; the best weights so far, or the last ones, are kept.", ConvergenceWarning)
        self.stopped = True

    def check_best(self) -> None:
        """Raise an error or warn if the best weights were to be kept, but no validation was finite."""
        watch = self._settings.watch
        measured = any(record[watch] is not None for record in self.result.history) if watch else False
        if self._settings.keeps_best and measured and self._best is None and not self._failed:
            self._fail(f"The {watch} was never finite")

    def check_end(self) -> None:
        """Warn if max_iter was reached before convergence, or no validation was finite."""
        settings = self._settings
        self.check_best()
        if settings.watch is not None and not self.stopped:
            warn_user(
                f"The training reached max_iter={settings.max_iter} epochs before the {settings.watch} "
                f"stopped improving by tol={settings.tol:g} for n_iter_no_change="
                f"{settings.n_iter_no_change} times in a row. Increase max_iter, tol or the learning rate.",
                ConvergenceWarning,
            )

    def finish(self, last: Snapshot) -> TrainingResult:
        """Return the result with the best weights, or the last ones."""
        self.result.keep(last if self._best is None else self._best)
        self.result.position = None
        return self.result
