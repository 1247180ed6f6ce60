"""What a training leaves for the next one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..training import TrainingResult
from ..training.coordinates import Coordinates

__all__ = ["Progress", "TrainingState", "Window"]

#: How much a stream must grow before the penalty of a model follows: each time, graphs are compiled again.
STEP = 1.1


@dataclass(frozen=True)
class Window:
    """Early stopping of a stream: what was best, and how many validations there were since.

    Attributes
    ----------
    lowest : float
        Best value of what is watched, losses as they are and scores with their sign changed.
    without_change : int
        Validations since it got better by ``tol``.
    epoch : int or None
        Call that was best.
    weights, raw_weights, states : dict
        What it left.
    stopped : bool
        Whether there were ``n_iter_no_change`` validations without it.
    """

    lowest: float = math.inf
    without_change: int = 0
    epoch: int | None = None
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    raw_weights: dict[str, np.ndarray] | None = None
    states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    stopped: bool = False


@dataclass(frozen=True)
class TrainingState:
    """What ``partial_fit`` and a warm start continue.

    Attributes
    ----------
    seed : int
        Seed of the orders of the samples.
    history : list of dict
        Records of the epochs.
    n_seen : int
        Samples that the epochs have visited.
    states : dict of (str, str) to ndarray
        States of the update.
    raw_weights : dict of str to ndarray or None
        Weights that the next batch would update, where the trained ones are averages.
    best_epoch : int or None
        Epoch whose weights were kept.
    total_weight : float
        Sum of the weights of all samples that were given.
    penalty_weight : float
        The one that the penalty of a model is relative to: it follows ``total_weight`` in steps.
    start_kept : bool
        Whether the last training was undone, as it made nothing better.
    anchor : dict of str to ndarray or None
        Weights that a penalty ``toward="start"`` pulls to.
    coordinates : Coordinates or None
        Those in which batches are trained on, of the first samples of a stream.
    window : Window
        Early stopping of a stream.
    grown : bool
        Whether trees were added to the model, which a warm start then continues.
    """

    seed: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    n_seen: int = 0
    states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    raw_weights: dict[str, np.ndarray] | None = None
    best_epoch: int | None = None
    total_weight: float = 0.0
    penalty_weight: float = 0.0
    start_kept: bool = False
    anchor: dict[str, np.ndarray] | None = None
    coordinates: Coordinates | None = None
    window: Window = Window()
    grown: bool = False

    def with_more(self, weight: float) -> TrainingState:
        """Return the state of a stream with more samples, of a sum of weights."""
        total = self.total_weight + weight
        follows = total > STEP * self.penalty_weight
        return replace(self, total_weight=total, penalty_weight=total if follows else self.penalty_weight)

    def after(self, result: TrainingResult, n_samples: int) -> TrainingState:
        """Return the state after a training on so many samples."""
        return TrainingState(
            self.seed,
            [*self.history, *result.history],
            self.n_seen + result.n_iter * n_samples,
            result.states,
            None if result.raw_weights is result.weights else result.raw_weights,
            result.best_epoch,
            self.total_weight,
            self.penalty_weight,
            result.start_kept,
            self.anchor,
            self.coordinates,
            self.window,
            self.grown,
        )

    def validated(
        self, weights: dict[str, np.ndarray], value: float, tol: float, n_iter_no_change: int
    ) -> TrainingState:
        """Return the state after a call of a stream that was validated, which may stop there.

        A stream that had stopped begins with a new window.
        """
        before = Window() if self.window.stopped else self.window
        count = 0 if value < before.lowest - tol else before.without_change + 1
        if value < before.lowest:
            best = Window(value, count, self.n_iter, weights, self.raw_weights, self.states)
        else:
            best = replace(before, without_change=count)
        if count < n_iter_no_change:
            return replace(self, window=best)
        window = replace(best, stopped=True)
        return replace(
            self, window=window, best_epoch=best.epoch, raw_weights=best.raw_weights, states=best.states
        )

    @property
    def n_iter(self) -> int:
        """Epochs run."""
        return len(self.history)

    @property
    def train_losses(self) -> list[float]:
        """Mean loss of each epoch."""
        return self._measured("loss")

    @property
    def validation_losses(self) -> list[float]:
        """Loss of each validation."""
        return self._measured("validation_loss")

    @property
    def validation_scores(self) -> list[float]:
        """Score of each validation."""
        return self._measured("validation_score")

    def _measured(self, name: str) -> list[float]:
        return [record[name] for record in self.history if record[name] is not None]


@dataclass
class Progress:
    """What hooks of callbacks find on an estimator in training, in the place of its fitted model.

    Attributes
    ----------
    state : TrainingState
        Records of the epochs.
    estimator : callable or None
        Returns the estimator that the training would leave if it ended now; for hooks of callbacks.
    """

    is_final: ClassVar[bool] = False

    state: TrainingState
    estimator: Callable[[], Any] | None = None
