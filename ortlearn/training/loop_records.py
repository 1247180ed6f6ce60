"""Settings, observers and results of the training loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from .graphs.averaging import averages, is_averaged
from .positions import Position

__all__ = ["Convert", "LoopSettings", "Measured", "Observer", "Snapshot", "TrainingResult"]


#: Converts a point in other coordinates to weights.
Convert = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]


@dataclass(frozen=True)
class LoopSettings:
    """Settings of the training loop."""

    max_iter: int  # number of epochs
    batch_size: int
    shuffle: bool = True  # whether to shuffle in every epoch
    first_epoch: int = 0  # number of the first epoch, for the schedule
    past_losses: Sequence[float] = ()  # mean losses of earlier epochs, for adaptive schedules
    validation_every: int = 1  # number of epochs between two validations
    # "loss", "validation_loss" or "validation_score" (keeps the best weights); None never stops early.
    watch: str | None = None
    tol: float = 0.0  # minimum improvement of the criterion
    n_iter_no_change: int = 10  # epochs (or validations) without improvement before the training stops
    exc: bool = True  # whether a non-finite loss is an error or a warning
    verbose: int = 0  # whether to show a progress bar
    description: str = "training"
    # Returns a sentence, after a space, for the message about a non-finite loss, or an empty string.
    advice: Callable[[], str] = str
    stream: Any = None  # estimator whose calls share a line of progress
    columns: Callable[[], dict[str, Any]] = dict  # returns additional entries of the record of an epoch
    keeps_history: bool = True  # whether it is used; otherwise solvers may omit losses
    chosen_rate: bool = False  # whether "auto" chose it, so that the user knows neither solver nor iterations

    @property
    def keeps_best(self) -> bool:
        """Whether the weights of the best validation are kept."""
        return self.watch is not None and self.watch.startswith("validation")


class Measured(NamedTuple):
    """Mean loss and score of a validation."""

    loss: float
    score: float | None = None


@dataclass(frozen=True)
class Snapshot:
    """Weights and states after an epoch."""

    raw: dict[str, np.ndarray]  # weights that the next batch updates, or points in other coordinates
    states: dict[tuple[str, str], np.ndarray]
    convert: Convert | None = None  # converts points to weights
    position: Position | None = None  # where to continue the training

    @cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """Weights for predictions: averages, if any."""
        return self._converted(averages(self.states, self.raw) if is_averaged(self.states) else self.raw)

    @cached_property
    def next_weights(self) -> dict[str, np.ndarray]:
        """Weights that the next batch updates."""
        return self._converted(self.raw)

    def _converted(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return arrays if self.convert is None else self.convert(arrays)


class Observer(Protocol):
    """Object that is called for every epoch."""

    def begin(self, epoch: int) -> None:
        """Called at the beginning of an epoch, with its number from 0."""

    def end(self, record: dict[str, Any], snapshot: Callable[[], Snapshot]) -> bool | None:
        """Called at the end of an epoch with its record; return whether to stop the training."""

    def pause(self, snapshot: Callable[[], Snapshot]) -> None:
        """Called within an epoch, at most a few times per second; a snapshot is read when it is called."""


@dataclass
class TrainingResult:
    """Result of a training."""

    weights: dict[str, np.ndarray] = field(default_factory=dict)
    states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    # Weights that the next batch updates; they differ from ``weights`` if these are averages.
    raw_weights: dict[str, np.ndarray] = field(default_factory=dict)
    # Records of the epochs (numbered from 1); what was not measured is None.
    history: list[dict[str, Any]] = field(default_factory=list)
    best_epoch: int | None = None  # epoch of the weights, if the best ones were kept
    start_kept: bool = False  # whether these are the initial weights
    position: Position | None = None  # position of an incomplete training

    @classmethod
    def of_start(cls, weights: dict[str, np.ndarray]) -> TrainingResult:
        """Return the result of a training without epochs."""
        return cls(weights, {}, weights, start_kept=True)

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> TrainingResult:
        """Return the result of an incomplete training."""
        found = cls(history=[] if snapshot.position is None else snapshot.position.history)
        found.keep(snapshot)
        return found

    def go_back_to(self, weights: dict[str, np.ndarray]) -> None:
        """Replace the weights by the initial ones."""
        self.weights, self.raw_weights, self.states = weights, weights, {}
        self.best_epoch, self.start_kept = None, True

    @property
    def n_iter(self) -> int:
        """Number of epochs."""
        return len(self.history)

    @property
    def train_losses(self) -> list[float]:
        """Mean loss of each epoch."""
        return [record["loss"] for record in self.history]

    @property
    def validation_losses(self) -> list[float]:
        """Loss of each validation."""
        losses = (record["validation_loss"] for record in self.history)
        return [loss for loss in losses if loss is not None]

    def keep(self, snapshot: Snapshot) -> None:
        """Set weights, states and position to those of a snapshot."""
        self.weights, self.states = snapshot.weights, snapshot.states
        self.position = snapshot.position
        self.raw_weights = snapshot.next_weights if is_averaged(snapshot.states) else snapshot.weights
