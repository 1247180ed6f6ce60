"""The exception that ends a training whose state is kept."""

from __future__ import annotations

from typing import Any

from .state import TrainingState

__all__ = ["Unfinished"]


class Unfinished(BaseException):
    """A training ended before its last epoch, by an interrupt or an error of its source: ``__cause__``."""

    def __init__(self, state: TrainingState):
        super().__init__()
        self.state = state
        self.model: Any = None  # fitted model, added by the caller
