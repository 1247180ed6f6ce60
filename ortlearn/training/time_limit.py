"""An observer that ends a training after some seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .settings import Observer
from .state import TrainingState

__all__ = ["OutOfTime", "TimeLimit"]


class OutOfTime(KeyboardInterrupt):
    """The time of a training is over: it ends as after Ctrl-C, in a state that can be resumed."""


class TimeLimit:
    """Observer that calls another one, and ends the training at the first call after a deadline.

    ``deadline`` is a time of :func:`time.monotonic`. At least one update is made.
    """

    def __init__(self, deadline: float, observer: Observer | None):
        self._deadline = deadline
        self._observer = observer

    def begin(self, epoch: int) -> None:
        """Call the other observer."""
        if self._observer is not None:
            self._observer.begin(epoch)

    def end(self, record: dict[str, Any], state: Callable[[], TrainingState]) -> bool | None:
        """Call the other observer, and end the training if its time is over."""
        stops = None if self._observer is None else self._observer.end(record, state)
        if not stops:
            self._check()
        return stops

    def pause(self, state: Callable[[], TrainingState]) -> None:
        """Call the other observer, and end the training if its time is over."""
        if self._observer is not None:
            self._observer.pause(state)
        self._check()

    def _check(self) -> None:
        if time.monotonic() > self._deadline:
            raise OutOfTime
