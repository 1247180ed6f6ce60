"""What a training leaves for the next one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..training import TrainingResult

__all__ = ["Progress", "TrainingState"]


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
    """

    seed: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    n_seen: int = 0
    states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    raw_weights: dict[str, np.ndarray] | None = None
    best_epoch: int | None = None

    def after(self, result: TrainingResult, n_samples: int) -> TrainingState:
        """Return the state after a training on so many samples."""
        return TrainingState(
            self.seed,
            [*self.history, *result.history],
            self.n_seen + result.n_iter * n_samples,
            result.states,
            None if result.raw_weights is result.weights else result.raw_weights,
            result.best_epoch,
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


@dataclass(frozen=True)
class Progress:
    """What hooks of callbacks find on an estimator in training, in the place of its fitted model."""

    state: TrainingState
