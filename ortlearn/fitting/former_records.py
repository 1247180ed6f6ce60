"""Records of version 0.2.0 of ortlearn: a training in three records, which are one state now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..comparison.candidates import Candidate
from ..exceptions import SavedFileError
from ..training.state import Best, Evaluations, States, TrainingState, Weights
from .fingerprint import Fingerprint

__all__ = ["Position", "Resumption", "Window", "state_of_values", "upgraded"]


@dataclass(frozen=True, eq=False)
class Window:
    """Early stopping of ``partial_fit``."""

    lowest: float = float("inf")
    without_change: int = 0
    epoch: int | None = None
    weights: Weights = field(default_factory=dict)
    raw_weights: Weights | None = None
    states: States = field(default_factory=dict)
    stopped: bool = False


@dataclass(frozen=True, eq=False)
class Position:
    """Position of an unfinished training."""

    objectives: np.ndarray
    shares: np.ndarray
    weights: Weights
    states: States
    n_epochs: int = 0
    recent: list[float] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    lowest: float = float("inf")
    without_change: int = 0
    best_epoch: int | None = None
    best_weights: Weights = field(default_factory=dict)
    best_states: States = field(default_factory=dict)
    stopped: bool = False
    failed: bool = False
    evaluations: Evaluations | None = None
    order_version: int = 1

    def of(self, state: TrainingState) -> TrainingState:
        """Return the state of an unfinished training at this position."""
        watched = (self.lowest, self.without_change, self.best_epoch, self.best_weights, self.best_states)
        own = ("objectives", "shares", "recent", "history", "evaluations", "order_version", "states")
        parts: dict[str, Any] = {name: getattr(self, name) for name in own}
        return replace(state, updated=self.weights, best=Best(*watched, self.stopped, self.failed), **parts)


@dataclass(frozen=True, eq=False)
class Resumption:
    """Data needed to resume a training."""

    random_state: np.random.RandomState
    weights: Weights
    digest: int | None
    parameters: dict[str, str]
    position: Position
    candidate: Candidate | None = None


def state_of_values(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a state for those of version 0.2.0."""
    if not {"raw_weights", "window"} & values.keys():
        return values
    known, window, coordinates = dict(values), values.get("window"), values.get("coordinates")
    known.pop("window", None)
    raw = known.pop("raw_weights", None)

    def points(weights: Any) -> Any:
        return weights if weights is None or coordinates is None else coordinates.as_points(weights)

    if isinstance(window, Window):
        best, own = points(window.raw_weights or window.weights or None), window
        known["best"] = Best(own.lowest, own.without_change, own.epoch, best or {}, own.states, own.stopped)
    return {**known, "updated": points(raw)}


def upgraded(state: Any, weights: Any, resumption: Any) -> TrainingState:
    """Return the state of the training in a file of version 0.2.0."""
    known = isinstance(state, TrainingState) and isinstance(weights, dict)
    if not known or not isinstance(resumption, Resumption | None):
        raise SavedFileError("Its record of the training has the wrong type.")
    state = replace(state, weights=weights)
    if resumption is None:
        return state
    own = resumption
    fingerprint = Fingerprint(own.random_state, own.parameters, {}, own.digest, candidate=own.candidate)
    return replace(own.position.of(state), anchor=own.weights, fingerprint=fingerprint)
