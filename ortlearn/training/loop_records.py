"""Settings of a training loop, what it measures, and its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from .averaging import averages, is_averaged
from .positions import Position

__all__ = ["LoopSettings", "Measured", "Observer", "Snapshot", "TrainingResult"]


@dataclass(frozen=True)
class LoopSettings:
    """How long and in which order to train.

    Attributes
    ----------
    max_iter : int
        Epochs.
    batch_size : int
        Rows of a batch.
    shuffle : bool
        Whether rows come in a new random order every epoch.
    first_epoch : int
        Number of the first epoch, for the schedule.
    past_losses : sequence of float
        Mean losses of the epochs before it, for a schedule that reacts to them.
    validation_every : int
        Epochs between two validations.
    watch : {"loss", "validation_loss", "validation_score"} or None
        What must go on getting better; None trains ``max_iter`` epochs. Where it is measured on other
        rows, the best weights are kept.
    tol : float
        What counts as better is so by more than this.
    n_iter_no_change : int
        Epochs (or validations) without that, after which the training stops.
    exc : bool
        Whether a loss that is not finite is an error, or a warning.
    verbose : int
        Whether to show a progress bar.
    description : str
        Text before the bar.
    advice : callable
        Returns a sentence for the message about a loss that is not finite, after a space, or nothing.
    stream : object or None
        Estimator whose calls share a line of progress; None for a bar of this training.
    columns : callable
        Returns what else the record of an epoch has, by name.
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

    @property
    def keeps_best(self) -> bool:
        """Whether the weights of the best validation are those that are kept."""
        return self.watch is not None and self.watch.startswith("validation")


class Measured(NamedTuple):
    """What a validation measures.

    Attributes
    ----------
    loss : float
        Mean loss.
    score : float or None
        Score, where there is one.
    """

    loss: float
    score: float | None = None


@dataclass(frozen=True)
class Snapshot:
    """Weights and states after an epoch.

    Attributes
    ----------
    raw : dict of str to ndarray
        What the next batch would update: weights, or points of other coordinates.
    states : dict of (str, str) to ndarray
        States of the update.
    convert : callable or None
        Returns the weights of a point.
    position : Position or None
        Where the training is, to continue it from there.
    """

    raw: dict[str, np.ndarray]
    states: dict[tuple[str, str], np.ndarray]
    convert: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None = None
    position: Position | None = None

    @cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """Weights to predict with: averages where there are any."""
        return self._converted(averages(self.states, self.raw) if is_averaged(self.states) else self.raw)

    @cached_property
    def next_weights(self) -> dict[str, np.ndarray]:
        """Weights that the next batch would update."""
        return self._converted(self.raw)

    def _converted(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return arrays if self.convert is None else self.convert(arrays)


class Observer(Protocol):
    """What hears of every epoch."""

    def begin(self, epoch: int) -> None:
        """Hear that an epoch begins, counted from 0.

        Parameters
        ----------
        epoch : int
            Its number.
        """

    def end(self, record: dict[str, Any], snapshot: Callable[[], Snapshot]) -> bool | None:
        """Hear what an epoch has left; True ends the training.

        Parameters
        ----------
        record : dict
            What the history has of the epoch.
        snapshot : callable
            Returns weights and states, read from the device when it is called.

        Returns
        -------
        bool or None
            Whether to stop.
        """

    def pause(self, snapshot: Callable[[], Snapshot]) -> None:
        """Hear that a part of an epoch is done, at most a few times a second.

        Parameters
        ----------
        snapshot : callable
            Returns weights and states, read from the device when it is called.
        """


@dataclass
class TrainingResult:
    """What a training leaves.

    Attributes
    ----------
    weights : dict of str to ndarray
        Trained weights.
    states : dict of (str, str) to ndarray
        States of the update.
    raw_weights : dict of str to ndarray
        Weights that the next batch would update: others than the trained ones where these are averages.
    history : list of dict
        What each epoch has left: ``epoch`` (from 1), ``loss``, ``validation_loss``,
        ``validation_score``, ``rate`` and ``seconds``; None where nothing was measured.
    best_epoch : int or None
        Epoch whose weights these are, where the best ones were kept.
    start_kept : bool
        Whether these are the weights that training started from.
    position : Position or None
        Where the training is; None once it is over.
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
        """Return the result of a training that leaves its starting weights as they are.

        Parameters
        ----------
        weights : dict of str to ndarray
            These weights.

        Returns
        -------
        TrainingResult
            Result without epochs.
        """
        return cls(weights, {}, weights, start_kept=True)

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> TrainingResult:
        """Return what a training has reached that is not over.

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
        """Make the weights those that training started from.

        Parameters
        ----------
        weights : dict of str to ndarray
            These weights.
        """
        self.weights, self.raw_weights, self.states = weights, weights, {}
        self.best_epoch, self.start_kept = None, True

    @property
    def n_iter(self) -> int:
        """Epochs run."""
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
        """Make weights and states those of a snapshot.

        Parameters
        ----------
        snapshot : Snapshot
            Weights and states after an epoch.
        """
        self.weights, self.states = snapshot.weights, snapshot.states
        self.position = snapshot.position
        self.raw_weights = snapshot.next_weights if is_averaged(snapshot.states) else snapshot.weights
