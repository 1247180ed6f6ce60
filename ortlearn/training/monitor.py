"""Validation, early stopping, history and progress at the end of every epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..exceptions import ConvergenceError, warn_user
from .loop_records import LoopSettings, Measured, Observer, Snapshot, TrainingResult

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
    past : sequence of dict, default=()
        Records of earlier epochs of the same training, which count for its end.
    best : Snapshot, default=None
        The best weights of these.

    Attributes
    ----------
    result : TrainingResult
        Records so far; ``finish`` puts in the weights.
    stopped : bool
        Whether the training ended by itself, or because the observer said so.
    """

    def __init__(
        self,
        settings: LoopSettings,
        validate: Validate | None = None,
        observer: Observer | None = None,
        advance: Callable[[dict], None] | None = None,
        past: Sequence[dict] = (),
        best: Snapshot | None = None,
    ):
        self.result = TrainingResult()
        self.stopped = False
        self._settings = settings
        self._validate = validate
        self._observer = observer
        self._advance = advance
        self._sign = -1.0 if settings.watch == "validation_score" else 1.0
        self._lowest, self._without_change = math.inf, 0
        self._best: Snapshot | None = None
        self._failed = False
        for record in past:
            self._watch(record, lambda: best)

    def begin(self, since: float | None = None) -> None:
        """Take note of the beginning of an epoch, now or at an earlier time of ``perf_counter``."""
        if self._observer is not None:
            self._observer.begin(self._settings.first_epoch + self.result.n_iter)
        self._begun = time.perf_counter() if since is None else since

    def end(self, loss: float, rate: float | None, snapshot: Callable[[], Snapshot]) -> bool:
        """Take note of what an epoch has left.

        Parameters
        ----------
        loss : float
            Mean loss.
        rate : float or None
            Learning rate; None for a solver.
        snapshot : callable
            Returns weights and states; called where they are looked at.

        Returns
        -------
        bool
            Whether to stop.
        """
        seconds = time.perf_counter() - self._begun
        number = self.result.n_iter + 1
        taken: list[Snapshot] = []

        def current() -> Snapshot:
            if not taken:
                taken.append(snapshot())
            return taken[0]

        measured = None
        due = (self._settings.first_epoch + number) % self._settings.validation_every == 0
        if self._validate is not None and due:
            measured = self._validate(current().weights)
        record = {
            "epoch": self._settings.first_epoch + number,
            "loss": loss,
            "validation_loss": None if measured is None else measured.loss,
            "validation_score": None if measured is None else measured.score,
            "rate": rate,
            "seconds": seconds,
        }
        self.result.history.append(record)
        if self._advance is not None:
            self._advance(record)
        self._watch(record, current)
        if self._observer is not None and self._observer.end(record, current):
            self.stopped = True
        return self.stopped

    @property
    def best(self) -> Snapshot | None:
        """The best weights so far, where they are to be kept."""
        return self._best

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
        return self.result
