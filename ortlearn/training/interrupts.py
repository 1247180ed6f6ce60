"""Exceptions that end a training whose state is kept."""

from __future__ import annotations

from typing import Any

from .state import TrainingState

__all__ = ["Interrupted", "ReadingFailed"]


class Interrupted(KeyboardInterrupt):
    """A KeyboardInterrupt of a training, with the same arguments."""

    def __init__(self, state: TrainingState, *arguments: Any):
        super().__init__(*arguments)
        self.state = state
        self.model: Any = None  # fitted model, added by the caller


class ReadingFailed(Exception):
    """The next samples of a training cannot be read; see ``__cause__``."""

    def __init__(self, state: TrainingState):
        super().__init__()
        self.state = state
        self.model: Any = None  # fitted model, added by the caller
