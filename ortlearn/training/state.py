"""The state of a training: what a checkpoint contains, an interrupt returns, and shards average."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data.orders import ORDER_VERSION
from .graphs.averaging import averages, is_averaged
from .solvers.coordinates import Coordinates

__all__ = ["Best", "Evaluations", "States", "TrainingState", "Unfinished", "Weights"]

#: Growth of the total weight of a stream at which the penalty of a model is updated, which compiles graphs.
STEP = 1.1

Weights = dict[str, np.ndarray]
#: States of the update, by weight and state.
States = dict[tuple[str, str], np.ndarray]


@dataclass(frozen=True, eq=False)
class Evaluations:
    """Recorded evaluations of a solver, in order, to replay them when it is run again."""

    checks: np.ndarray  # checksums of the weights: uint32 of shape (n_evaluations,)
    values: np.ndarray  # objectives: float64 of shape (n_evaluations,)
    gradients: np.ndarray  # float64 of shape (n_evaluations, n_elements)


@dataclass(frozen=True, eq=False)
class Best:
    """Early stopping: the best weights so far, and what has happened since."""

    lowest: float = float("inf")  # best value of the criterion; scores are negated
    without_change: int = 0  # epochs or validations since it improved by ``tol``
    epoch: int | None = None  # epoch of the best weights, if they are kept
    updated: Weights = field(default_factory=dict)
    states: States = field(default_factory=dict)
    stopped: bool = False  # whether ``n_iter_no_change`` values brought no improvement
    failed: bool = False  # whether a value was NaN


@dataclass(frozen=True, eq=False)
class TrainingState:
    """State of a training, between two calls of onnxruntime.

    A new training begins with one, a resumed one continues it with bitwise the same result, and
    ``partial_fit`` adds an epoch to it.
    """

    weights: Weights = field(default_factory=dict)  # weights for predictions
    # Weights that the next batch updates, in ``coordinates``; None if they are ``weights``.
    updated: Weights | None = None
    states: States = field(default_factory=dict)  # states of the update
    coordinates: Coordinates | None = None  # for batches, from the first samples of a stream
    anchor: Weights | None = None  # starting weights, for penalties with ``toward="start"``
    seed: int = 0  # seed of the orders of samples
    order_version: int = ORDER_VERSION
    history: list[dict[str, Any]] = field(default_factory=list)  # records of the complete epochs, from 1
    n_seen: int = 0  # number of samples in all epochs of complete calls
    # Of the epoch in progress: objectives of its batches, and their weights in the mean.
    objectives: np.ndarray = field(default_factory=lambda: np.zeros(0))
    shares: np.ndarray = field(default_factory=lambda: np.zeros(0))
    recent: list[float] = field(default_factory=list)  # objectives of the last batches before this epoch
    best: Best = Best()
    evaluations: Evaluations | None = None  # those of a solver
    best_epoch: int | None = None  # epoch whose weights were kept
    start_kept: bool = False  # whether the last training restored the starting weights
    grown: bool = False  # whether trees were added to the model
    total_weight: float = 0.0  # sum of the weights of all samples
    # Of a call of ``fit`` that is not complete: what must be equal to resume it, a record of ``fitting``.
    fingerprint: Any = None
    penalty_weight: float = 0.0  # the ``total_weight`` that the penalty is relative to, updated in steps

    def at(self, updated: Weights, states: States) -> TrainingState:
        """Return the state with other weights that the next batch updates, and states of the update."""
        averaged, own = is_averaged(states), self.coordinates
        weights = averages(states, updated) if averaged else updated
        weights = weights if own is None else own.as_weights(weights)
        return replace(self, weights=weights, updated=None if weights is updated else updated, states=states)

    def with_weights(self, weights: Weights) -> TrainingState:
        """Return the state with other weights."""
        return replace(self, weights=weights, updated=None)

    def back_to(self, weights: Weights) -> TrainingState:
        """Return the state with the starting weights, since those after the training are not better."""
        return replace(self.with_weights(weights), states={}, best_epoch=None, start_kept=True)

    def in_coordinates(self, coordinates: Coordinates | None) -> TrainingState:
        """Return the state with the weights that the next batch updates in other coordinates."""
        if coordinates is self.coordinates:
            return self
        updated = self.next_weights
        if coordinates is not None:
            updated = coordinates.as_points(updated)
        return replace(self, coordinates=coordinates, updated=updated)

    def restarted(self) -> TrainingState:
        """Return the state of a new training that begins with these weights."""
        state = self.with_weights(self.weights).in_coordinates(None)
        return replace(state, updated=None, states={}, history=[], best=Best(), best_epoch=None)

    def without_progress(self) -> TrainingState:
        """Return the state as that of a complete call of ``fit``."""
        none: dict[str, Any] = {"objectives": np.zeros(0), "shares": np.zeros(0), "recent": []}
        return replace(self, **none, best=Best(), evaluations=None, fingerprint=None)

    @property
    def continued(self) -> TrainingState:
        """State that a later call continues."""
        return self if self.fingerprint is None else self.without_progress()

    def with_more(self, weight: float) -> TrainingState:
        """Return the state with the weight of more samples of a stream."""
        total = self.total_weight + weight
        penalty_weight = total if total > STEP * self.penalty_weight else self.penalty_weight
        return replace(self, total_weight=total, penalty_weight=penalty_weight)

    @property
    def points(self) -> Weights:
        """Weights that the next batch updates, in ``coordinates``."""
        if self.updated is not None:
            return self.updated
        return self.weights if self.coordinates is None else self.coordinates.as_points(self.weights)

    @property
    def next_weights(self) -> Weights:
        """Weights that the next batch updates, in the coordinates of the model."""
        if self.updated is None or self.coordinates is None:
            return self.weights if self.updated is None else self.updated
        return self.coordinates.as_weights(self.updated)

    @property
    def has_updates(self) -> bool:
        """Whether a batch or an iteration is complete."""
        return bool(self.history) or len(self.objectives) > 0

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


class Unfinished(BaseException):
    """A training ended before its last epoch, by an interrupt or an error of its source: ``__cause__``."""

    def __init__(self, state: TrainingState):
        super().__init__()
        self.state = state
        self.model: Any = None  # fitted model, added by the caller
