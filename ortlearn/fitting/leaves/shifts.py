"""Values of leaves or neighbours, all shifted so that another loss than their own is lowest."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...comparison.measures import Weights, weights_of
from ...comparison.shifts import best_shift
from ...data.samples import Data
from ...inference.score_runner import ScoreRunner

__all__ = ["losses_at", "shifted"]


def shifted(runner: ScoreRunner, start: Weights, offset: float, data: Data) -> dict[str, np.ndarray]:
    """Return weights, shifted so that the loss of the samples is lowest.

    A change of all weights by ``offset`` changes each score by one.
    """
    scores, weights = runner.scores(start, data), weights_of(data)
    residuals, shifts = data.y.reshape(scores.shape) - scores, np.zeros(scores.shape[1])
    for output, own in enumerate(residuals.T):
        losses = partial(losses_at, runner, scores, output, data=data)
        shifts[output] = best_shift(losses, own[weights > 0].astype(np.float64), weights)
    moves = {name: shifts if array.ndim > 1 else shifts[0] for name, array in start.items()}
    return {name: (array + offset * moves[name]).astype(array.dtype) for name, array in start.items()}


def losses_at(
    runner: ScoreRunner, scores: np.ndarray, output: int, values: np.ndarray, data: Data
) -> np.ndarray:
    """Return losses at changes of one output, float32 of shape (n_samples, n_values)."""
    losses = np.empty((len(data), len(values)), dtype=np.float32)
    for number, value in enumerate(values):
        changed = scores.copy()
        changed[:, output] += value
        losses[:, number] = runner.losses(changed, data)
    return losses
