"""Position of a training, to continue it in another process with bitwise the same result."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["EvaluationLog", "Evaluations", "Interrupted", "Position", "ReadingFailed"]

#: Maximum bytes of recorded gradients of a solver; later evaluations are repeated.
MAX_BYTES = 1 << 26


@dataclass(frozen=True)
class Evaluations:
    """Recorded evaluations of a solver, in order, to replay them when it is run again."""

    checks: np.ndarray  # checksums of the weights: uint32 of shape (n_evaluations,)
    values: np.ndarray  # objectives: float64 of shape (n_evaluations,)
    gradients: np.ndarray  # float64 of shape (n_evaluations, n_elements)


@dataclass(frozen=True)
class Position:
    """Position of a training between two calls of onnxruntime."""

    n_epochs: int = 0  # number of complete epochs, or iterations of a solver
    objectives: np.ndarray = field(default_factory=lambda: np.zeros(0))  # one for each batch of the epoch
    # Weights of these batches in the mean loss of the epoch.
    shares: np.ndarray = field(default_factory=lambda: np.zeros(0))
    recent: list[float] = field(default_factory=list)  # objectives of the last batches before the epoch
    # Weights that the next batch updates, or points in other coordinates.
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)  # records of the complete epochs
    lowest: float = float("inf")  # best value of the criterion of early stopping; scores are negated
    without_change: int = 0  # epochs or validations since it improved
    best_epoch: int | None = None  # epoch of the best weights, if they are kept
    best_weights: dict[str, np.ndarray] = field(default_factory=dict)
    best_states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    stopped: bool = False
    failed: bool = False  # whether a validation was NaN
    evaluations: Evaluations | None = None  # evaluations of a solver, to replay them
    order_version: int = 1  # version of the sample orders; 1 in files without it

    @property
    def has_updates(self) -> bool:
        """Whether a batch or an iteration is complete."""
        return self.n_epochs > 0 or len(self.objectives) > 0


class Interrupted(KeyboardInterrupt):
    """A KeyboardInterrupt of a training, with the same arguments."""

    def __init__(self, snapshot: Any, *arguments: Any):
        super().__init__(*arguments)
        self.snapshot = snapshot
        self.model: Any = None  # fitted model, added by the caller


class ReadingFailed(Exception):
    """The next samples of a training cannot be read; see ``__cause__``."""

    def __init__(self, snapshot: Any):
        super().__init__()
        self.snapshot = snapshot
        self.model: Any = None  # fitted model, added by the caller


class EvaluationLog:
    """Records the evaluations of a solver, and replays those of an earlier run."""

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
        """Return objective and gradient, computed if they are not known."""
        check = zlib.crc32(np.float64(width).tobytes(), zlib.crc32(np.ascontiguousarray(vector)))
        found = self._replayed(check)
        value, gradient = compute(vector, width) if found is None else found
        if len(self._values) == self._next and gradient.nbytes * (self._next + 1) <= MAX_BYTES:
            self._checks.append(check)
            self._values.append(value)
            self._gradients.append(gradient.copy())
        self._next += 1
        return value, gradient

    def _replayed(self, check: int) -> tuple[float, np.ndarray] | None:
        known, number = self._known, self._next
        if known is None or number >= len(known.checks):
            return None
        if int(known.checks[number]) != check:
            self._known = None  # the solver differs, for example in its version
            return None
        return float(known.values[number]), known.gradients[number].copy()

    def evaluations(self) -> Evaluations:
        """Return the recorded evaluations."""
        gradients = np.stack(self._gradients) if self._gradients else np.zeros((0, 0))
        return Evaluations(np.array(self._checks, dtype=np.uint32), np.array(self._values), gradients)
