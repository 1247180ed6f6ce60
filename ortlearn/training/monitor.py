"""Validation, early stopping, history and progress at the end of every epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..exceptions import ConvergenceError, warn_user
from .batches import ORDER_VERSION
from .loop_records import LoopSettings, Measured, Observer, Snapshot, TrainingResult
from .positions import Position

__all__ = ["Monitor", "Validate"]

Validate = Callable[[dict[str, np.ndarray]], Measured]


class Monitor:
    """The records of a training, and the decision to stop it.

    Parameters
    ----------
    settings : LoopSettings
        What to watch, and how patiently.
    validate : callable, default=None
        Takes weights, returns what is measured on other rows.
    observer : Observer, default=None
        Hears of every epoch.
    advance : callable, default=None
        Takes the record of each epoch, to show it.
    position : Position, default=None
        Where an earlier training ended, which this one continues.
    convert : callable, default=None
        Returns the weights of a point of other coordinates.

    Attributes
    ----------
    result : TrainingResult
        Records so far; ``finish`` puts in the weights.
    stopped : bool
        Whether the training ended by itself, or because the observer said so.
    locate : callable
        Returns a snapshot of the end of an epoch with its position, of which the loop knows a part: it takes
        the snapshot, what is known here, and the place that the loop gave.
    """

    def __init__(
        self,
        settings: LoopSettings,
        validate: Validate | None = None,
        observer: Observer | None = None,
        advance: Callable[[dict], None] | None = None,
        position: Position | None = None,
        convert: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None = None,
    ):
        self.result = TrainingResult()
        self.stopped = False
        self.locate: Callable[[Snapshot, Position, Any], Snapshot] = _as_it_is
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
            self._replayed = position.history  # a solver is run again, and told what it was told
        elif position is not None:
            self._continue_from(position, convert)
        self._mark(None)

    def _continue_from(
        self,
        position: Position,
        convert: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None,
    ) -> None:
        self.result.history, self.result.best_epoch = list(position.history), position.best_epoch
        self._lowest, self._without_change = position.lowest, position.without_change
        self.stopped, self._failed = position.stopped, position.failed
        if position.best_weights:
            self._best = Snapshot(position.best_weights, position.best_states, convert)
        for record in position.history if self._advance is not None else ():
            self._advance(record)  # type: ignore[misc]

    def _mark(self, place: object) -> None:
        """Take note of all that an epoch has left, at once: an interrupt may come between two statements."""
        result = self.result
        self._marked = (
            (result.n_iter, self._lowest, self._without_change, self._best, result.best_epoch),
            (self.stopped, self._failed),
            place,
        )

    @property
    def place(self) -> object:
        """Where the loop was when the last epoch had ended, in its own terms."""
        return self._marked[2]

    def position(self) -> Position:
        """Return where the training was at the end of the last epoch, without weights and states."""
        (n_epochs, lowest, without_change, best, best_epoch), (stopped, failed), _ = self._marked
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
        """Whether the epoch in progress was recorded by an earlier run."""
        return self.result.n_iter < len(self._replayed)

    def begin(self, since: float | None = None) -> None:
        """Take note of the beginning of an epoch, now or at an earlier time of ``perf_counter``."""
        if self._observer is not None and not self._is_replayed:
            self._observer.begin(self._settings.first_epoch + self.result.n_iter)
        self._begun = time.perf_counter() if since is None else since

    def end(
        self,
        loss: float,
        rate: float | None,
        snapshot: Callable[[], Snapshot],
        place: object = None,
    ) -> bool:
        """Take note of what an epoch has left."""
        seconds = time.perf_counter() - self._begun
        number = self.result.n_iter + 1
        taken: list[Snapshot] = []

        def current() -> Snapshot:
            if not taken:
                taken.append(snapshot())
            return taken[0]

        was_replayed, measured = self._is_replayed, None
        due = (self._settings.first_epoch + number) % self._settings.validation_every == 0
        if was_replayed:
            pass
        elif self._validate is not None and due:
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
        self._mark(place)
        if was_replayed or self._observer is None:
            return self.stopped
        if self._observer.end(record, lambda: self.locate(current(), self.position(), place)):
            self.stopped = True
            self._mark(place)
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

    def _fail(self, what: str) -> None:
        self._failed = True
        message = (
            f"{what}: nothing tells which weights are best. Look at the rows to validate on and at scoring"
        )
        if self._settings.exc:
            raise ConvergenceError(message + ", or keep the last weights with exc=False.")
        warn_user(message + "; the best weights so far, or the last ones, are kept.", ConvergenceWarning)
        self.stopped = True

    def check_best(self) -> None:
        """Raise an error where the best weights were to be kept, and none were."""
        watch = self._settings.watch
        measured = any(record[watch] is not None for record in self.result.history) if watch else False
        if self._settings.keeps_best and measured and self._best is None and not self._failed:
            self._fail(f"The {watch} was never finite")

    def check_end(self) -> None:
        """Warn where the epochs ran out before the training could stop, or nothing was ever best."""
        settings = self._settings
        self.check_best()
        if settings.watch is not None and not self.stopped:
            warn_user(
                f"The training ran all of max_iter={settings.max_iter} epochs before the {settings.watch} "
                f"got no better by tol={settings.tol:g} for n_iter_no_change={settings.n_iter_no_change} "
                "times in a row: increase max_iter, tol or the learning rate.",
                ConvergenceWarning,
            )

    def finish(self, last: Snapshot) -> TrainingResult:
        """Return the records with the best weights, or the last ones."""
        self.result.keep(last if self._best is None else self._best)
        self.result.position = None
        return self.result


def _as_it_is(snapshot: Snapshot, position: Position, place: Any) -> Snapshot:
    return snapshot
