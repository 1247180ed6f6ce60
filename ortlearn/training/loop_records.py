"""What a training is told, and what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

__all__ = ["LoopSettings", "TrainingResult"]


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
    exc : bool
        Whether a loss that is not finite is an error, or a warning.
    verbose : int
        Whether to show a progress bar.
    description : str
        Text before the bar.
    """

    max_iter: int
    batch_size: int
    shuffle: bool = True
    first_epoch: int = 0
    past_losses: Sequence[float] = ()
    validation_every: int = 1
    exc: bool = True
    verbose: int = 0
    description: str = "training"


@dataclass
class TrainingResult:
    """What a training leaves.

    Attributes
    ----------
    weights : dict of str to ndarray
        Trained weights.
    states : dict of (str, str) to ndarray
        States of the update.
    train_losses : list of float
        Mean loss of each epoch.
    validation_losses : list of float
        Loss of each validation.
    n_iter : int
        Epochs run.
    """

    weights: dict[str, np.ndarray]
    states: dict[tuple[str, str], np.ndarray]
    train_losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    n_iter: int = 0
