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
    """Settings of the training loop.

    Attributes
    ----------
    max_iter : int
        Number of epochs.
    batch_size : int
        Number of samples of a batch.
    shuffle : bool
        Whether to shuffle the samples in every epoch.
    first_epoch : int
        Number of the first epoch, for the schedule.
    past_losses : sequence of float
        Mean losses of earlier epochs, for adaptive schedules.
    validation_every : int
        Number of epochs between two validations.
    watch : {"loss", "validation_loss", "validation_score"} or None
        Criterion of early stopping; None trains ``max_iter`` epochs. With a validation criterion, the best
        weights are kept.
    tol : float
        Minimum improvement of the criterion.
    n_iter_no_change : int
        Number of epochs (or validations) without improvement after which the training stops.
    exc : bool
        Whether a non-finite loss is an error or a warning.
    verbose : int
        Whether to show a progress bar.
    description : str
        Text of the progress bar.
    advice : callable
        Returns a sentence, after a space, to add to the message about a non-finite loss, or an empty string.
    stream : object or None
        Estimator whose calls share a line of progress; None for a separate progress bar.
    columns : callable
        Returns additional entries of the record of an epoch.
    keeps_history : bool
        Whether the history of the result is used; without it, solvers may omit the losses of iterations.
    chosen_rate : bool
        Whether ``"auto"`` chose the learning rate, so that the user knows neither solver nor iterations.
    """

    max_iter: int
    batch_size: int
    shuffle: bool = True
    first_epoch: int = 0
    past_losses: Sequence[float] = ()
    validation_every: int = 1
    watch: str | None = None
    tol: float = 0.0
    n_iter_no_change: int = 10
    exc: bool = True
    verbose: int = 0
    description: str = "training"
    advice: Callable[[], str] = str
    stream: Any = None
    columns: Callable[[], dict[str, Any]] = dict
    keeps_history: bool = True
    chosen_rate: bool = False

    @property
    def keeps_best(self) -> bool:
        """Whether the weights of the best validation are kept."""
        return self.watch is not None and self.watch.startswith("validation")


class Measured(NamedTuple):
    """Result of a validation.

    Attributes
    ----------
    loss : float
        Mean loss.
    score : float or None
        Score, if any.
    """

    loss: float
    score: float | None = None


@dataclass(frozen=True)
class Snapshot:
    """Weights and states after an epoch.

    Attributes
    ----------
    raw : dict of str to ndarray
        Weights that the next batch updates, or points in other coordinates.
    states : dict of (str, str) to ndarray
        States of the update.
    convert : callable or None
        Converts points to weights.
    position : Position or None
        Position to continue the training from.
    """

    raw: dict[str, np.ndarray]
    states: dict[tuple[str, str], np.ndarray]
    convert: Convert | None = None
    position: Position | None = None

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
        """Called at the beginning of an epoch.

        Parameters
        ----------
        epoch : int
            Number of the epoch, counted from 0.
        """

    def end(self, record: dict[str, Any], snapshot: Callable[[], Snapshot]) -> bool | None:
        """Called at the end of an epoch.

        Parameters
        ----------
        record : dict
            Entry of the epoch in the history.
        snapshot : callable
            Returns weights and states, read from the device when it is called.

        Returns
        -------
        bool or None
            Whether to stop the training.
        """

    def pause(self, snapshot: Callable[[], Snapshot]) -> None:
        """Called within an epoch, at most a few times per second.

        Parameters
        ----------
        snapshot : callable
            Returns weights and states, read from the device when it is called.
        """


@dataclass
class TrainingResult:
    """Result of a training.

    Attributes
    ----------
    weights : dict of str to ndarray
        Trained weights.
    states : dict of (str, str) to ndarray
        States of the update.
    raw_weights : dict of str to ndarray
        Weights that the next batch updates; they differ from ``weights`` if these are averages.
    history : list of dict
        Records of the epochs: ``epoch`` (from 1), ``loss``, ``validation_loss``, ``validation_score``,
        ``rate`` and ``seconds``; None if not measured.
    best_epoch : int or None
        Epoch of the weights, if the best ones were kept.
    start_kept : bool
        Whether these are the initial weights.
    position : Position or None
        Position of an incomplete training; None once it has ended.
    """

    weights: dict[str, np.ndarray] = field(default_factory=dict)
    states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    raw_weights: dict[str, np.ndarray] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    best_epoch: int | None = None
    start_kept: bool = False
    position: Position | None = None

    @classmethod
    def of_start(cls, weights: dict[str, np.ndarray]) -> TrainingResult:
        """Return the result of a training without epochs.

        Parameters
        ----------
        weights : dict of str to ndarray
            Initial weights.

        Returns
        -------
        TrainingResult
            Result with the initial weights.
        """
        return cls(weights, {}, weights, start_kept=True)

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> TrainingResult:
        """Return the result of an incomplete training.

        Parameters
        ----------
        snapshot : Snapshot
            Weights, states and position.

        Returns
        -------
        TrainingResult
            Result of the epochs so far.
        """
        found = cls(history=[] if snapshot.position is None else snapshot.position.history)
        found.keep(snapshot)
        return found

    def go_back_to(self, weights: dict[str, np.ndarray]) -> None:
        """Replace the weights by the initial ones.

        Parameters
        ----------
        weights : dict of str to ndarray
            Initial weights.
        """
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
        """Set weights, states and position to those of a snapshot.

        Parameters
        ----------
        snapshot : Snapshot
            Weights and states after an epoch.
        """
        self.weights, self.states = snapshot.weights, snapshot.states
        self.position = snapshot.position
        self.raw_weights = snapshot.next_weights if is_averaged(snapshot.states) else snapshot.weights
