"""The state of a training that later trainings continue."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..training.loop import TrainingResult
from ..training.solvers.coordinates import Coordinates

__all__ = ["Progress", "TrainingState", "Window"]

#: Growth of the total weight of a stream at which the penalty of a model is updated, which compiles graphs.
STEP = 1.1


@dataclass(frozen=True)
class Window:
    """Early stopping of ``partial_fit``: the best call, and the number of validations since then."""

    lowest: float = math.inf  # lowest validation loss, or lowest negative score
    without_change: int = 0  # validations since the last improvement by ``tol``
    epoch: int | None = None  # number of the best call, whose weights and states follow
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    raw_weights: dict[str, np.ndarray] | None = None
    states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    stopped: bool = False  # whether ``n_iter_no_change`` validations brought no improvement


@dataclass(frozen=True)
class TrainingState:
    """State that ``partial_fit`` and a warm start continue."""

    seed: int = 0  # seed of the orders of samples
    history: list[dict[str, Any]] = field(default_factory=list)  # records of the epochs
    n_seen: int = 0  # number of samples in all epochs
    states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)  # states of the learning rate
    # Weights that the next batch would update, if the trained ones are averages.
    raw_weights: dict[str, np.ndarray] | None = None
    best_epoch: int | None = None  # epoch whose weights were kept
    total_weight: float = 0.0  # sum of the weights of all samples
    penalty_weight: float = 0.0  # the ``total_weight`` that the penalty is relative to, updated in steps
    start_kept: bool = False  # whether the last training restored the starting weights
    anchor: dict[str, np.ndarray] | None = None  # starting weights, for penalties with ``toward="start"``
    coordinates: Coordinates | None = None  # for batches, from the first samples of a stream
    window: Window = Window()
    grown: bool = False  # whether trees were added to the model

    def with_more(self, weight: float) -> TrainingState:
        """Return the state with the weight of more samples."""
        total = self.total_weight + weight
        is_step = total > STEP * self.penalty_weight
        return replace(self, total_weight=total, penalty_weight=total if is_step else self.penalty_weight)

    def after(self, result: TrainingResult, n_samples: int) -> TrainingState:
        """Return the state after a training on ``n_samples`` samples."""
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
        """Return the state after a validation of ``partial_fit``; after a stop, counting begins again."""
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
        """Number of epochs."""
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
    """Progress of a training, which replaces the fitted model of an estimator in callbacks."""

    is_final: ClassVar[bool] = False

    state: TrainingState  # state with the history so far
    estimator: Callable[[], Any] | None = None  # returns the estimator with the current weights
