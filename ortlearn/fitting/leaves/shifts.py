"""Values of leaves or neighbours, all shifted so that another loss than their own is lowest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...comparison.measures import Weights, weights_of
from ...data.samples import Data
from ...inference.score_runner import ScoreRunner

__all__ = ["VALUES", "best_shift", "losses_at", "shifted"]

#: Largest number of values at which losses are computed at once.
VALUES = 96


def shifted(runner: ScoreRunner, start: Weights, offset: float, data: Data) -> dict[str, np.ndarray]:
    """Return weights, shifted so that the loss of the samples is lowest.

    A change of all weights by ``offset`` changes each score by one.
    """
    scores, weights = runner.scores(start, data), weights_of(data)
    residuals, shifts = data.y.reshape(scores.shape) - scores, np.zeros(scores.shape[1])
    for output, own in enumerate(residuals.T):
        losses = partial(losses_at, runner, data, scores, output)
        shifts[output] = best_shift(losses, own[weights > 0].astype(np.float64), weights)
    moves = {name: shifts if array.ndim > 1 else shifts[0] for name, array in start.items()}
    return {name: (array + offset * moves[name]).astype(array.dtype) for name, array in start.items()}


def best_shift(
    losses: Callable[[np.ndarray], np.ndarray], residuals: np.ndarray, weights: np.ndarray
) -> float:
    """Return the residual with the lowest weighted loss, which has one minimum; 0 if there is only one.

    ``losses`` returns those of all samples at some shifts, of shape (n_samples, n_values). Losses have their
    kinks at residuals: means of quantiles are near frequent labels, such as zeros of counts, and a small
    shift puts them on the right side.
    """
    shift, left = 0.0, np.unique(residuals)
    while len(left) > 1:
        taken = np.unique(np.linspace(0, len(left) - 1, min(len(left), VALUES)).astype(int))
        best = int((weights @ losses(left[taken])).argmin())
        shift = float(left[taken[best]])
        if len(taken) == len(left):
            break
        left = left[taken[max(best - 1, 0)] : taken[min(best + 1, len(taken) - 1)] + 1]
    return shift


def losses_at(
    runner: ScoreRunner, data: Data, scores: np.ndarray, output: int, values: np.ndarray
) -> np.ndarray:
    """Return losses at changes of one output, float32 of shape (n_samples, n_values)."""
    losses = np.empty((len(data), len(values)), dtype=np.float32)
    for number, value in enumerate(values):
        changed = scores.copy()
        changed[:, output] += value
        losses[:, number] = runner.losses(changed, data)
    return losses
