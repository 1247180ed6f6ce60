"""Where a training is: what another process needs to continue it with the same bits."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["EvaluationLog", "Evaluations", "Interrupted", "Position", "ReadingFailed"]

#: Bytes of gradients that are kept of a solver; evaluations after them are computed again.
MOST_BYTES = 1 << 26


@dataclass(frozen=True)
class Evaluations:
    """What a solver was told so far, in its order: it asks the same again when it is run again.

    Attributes
    ----------
    checks : ndarray of shape (n_evaluations,), uint32
        Checksums of the weights that were asked for.
    values : ndarray of shape (n_evaluations,), float64
        Objectives.
    gradients : ndarray of shape (n_evaluations, n_elements), float64
        Gradients.
    """

    checks: np.ndarray
    values: np.ndarray
    gradients: np.ndarray


@dataclass(frozen=True)
class Position:
    """Place in a training, between two calls of onnxruntime.

    Attributes
    ----------
    n_epochs : int
        Epochs, or iterations of a solver, that are complete.
    objectives : ndarray of shape (n_batches,)
        Objectives of the batches of the epoch in progress.
    shares : ndarray of shape (n_batches,)
        Weights of these batches in the mean loss of the epoch.
    recent : list of float
        Objectives of the last batches before the epoch.
    weights : dict of str to ndarray
        What the next batch updates: weights, or points of other coordinates.
    states : dict of (str, str) to ndarray
        States of the update.
    history : list of dict
        Records of the complete epochs.
    lowest : float
        Best value of what is watched.
    without_change : int
        Epochs or validations since it got better.
    best_epoch : int or None
        Epoch of the best weights, where they are kept.
    best_weights, best_states : dict
        What that epoch left; empty where nothing is kept.
    stopped : bool
        Whether the training ended by itself.
    failed : bool
        Whether a validation was not a number.
    evaluations : Evaluations or None
        What a solver was told.
    order_version : int
        Version of the orders of the samples; 1 in files that name none.
    """

    n_epochs: int = 0
    objectives: np.ndarray = field(default_factory=lambda: np.zeros(0))
    shares: np.ndarray = field(default_factory=lambda: np.zeros(0))
    recent: list[float] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    lowest: float = float("inf")
    without_change: int = 0
    best_epoch: int | None = None
    best_weights: dict[str, np.ndarray] = field(default_factory=dict)
    best_states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    stopped: bool = False
    failed: bool = False
    evaluations: Evaluations | None = None
    order_version: int = 1

    @property
    def has_updates(self) -> bool:
        """Whether a batch or an iteration is complete."""
        return self.n_epochs > 0 or len(self.objectives) > 0


class Interrupted(KeyboardInterrupt):
    """An interrupt of a training, with the arguments of the interrupt.

    Attributes
    ----------
    snapshot : Snapshot
        What the training has reached, and its position.
    model : object
        What the caller makes of it.
    """

    def __init__(self, snapshot: Any, *arguments: Any):
        super().__init__(*arguments)
        self.snapshot = snapshot
        self.model: Any = None


class ReadingFailed(Exception):
    """The next rows of a training cannot be read; the cause says why.

    Attributes
    ----------
    snapshot : Snapshot
        What the training has reached, and its position.
    model : object
        What the caller makes of it.
    """

    def __init__(self, snapshot: Any):
        super().__init__()
        self.snapshot = snapshot
        self.model: Any = None


class EvaluationLog:
    """The objective of a solver, which remembers what it returned, and returns it again in a second run.

    Parameters
    ----------
    known : Evaluations or None
        What an earlier run of the same training was told.
    """

    def __init__(self, known: Evaluations | None = None):
        self._known = known
        self._next = 0
        self._checks: list[int] = []
        self._values: list[float] = []
        self._gradients: list[np.ndarray] = []

    def evaluate(
        self,
        compute: Callable[[np.ndarray, float], tuple[float, np.ndarray]],
        vector: np.ndarray,
        width: float,
    ) -> tuple[float, np.ndarray]:
        """Return objective and gradient, computed where they are not known."""
        check = zlib.crc32(np.float64(width).tobytes(), zlib.crc32(np.ascontiguousarray(vector)))
        found = self._recalled(check)
        value, gradient = compute(vector, width) if found is None else found
        if len(self._values) == self._next and gradient.nbytes * (self._next + 1) <= MOST_BYTES:
            self._checks.append(check)
            self._values.append(value)
            self._gradients.append(gradient.copy())
        self._next += 1
        return value, gradient

    def _recalled(self, check: int) -> tuple[float, np.ndarray] | None:
        known, number = self._known, self._next
        if known is None or number >= len(known.checks):
            return None
        if int(known.checks[number]) != check:
            self._known = None  # another version of the solver asks otherwise
            return None
        return float(known.values[number]), known.gradients[number].copy()

    def evaluations(self) -> Evaluations:
        """Return what was told so far."""
        gradients = np.stack(self._gradients) if self._gradients else np.zeros((0, 0))
        return Evaluations(np.array(self._checks, dtype=np.uint32), np.array(self._values), gradients)
