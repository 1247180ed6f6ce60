"""Values of leaves or neighbours, all shifted so that another loss than their own is lowest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...comparison.candidates import Pull
from ...comparison.evidence import best_of
from ...comparison.measures import Weights, weights_of
from ...data.samples import Data
from ...inference.score_runner import ScoreRunner
from ...models import fitted_part
from ...models.capabilities import BoostedStages, ShiftedScores, capability_of
from ...problem.configuration import Configuration
from ...problem.problem import Problem
from ...problem.samples import Samples
from ...training.graphs.task import TrainingTask
from ...training.optimisations.table_rows import looked_up_tables
from .clones import unseen_predictions

__all__ = [
    *("VALUES", "best_shift", "losses_at", "moved", "offsets_of", "offsets_of_stages"),
    *("shifted", "unseen_shifts"),
]

#: Largest number of values at which losses are computed at once.
VALUES = 96


def shifted(
    runner: ScoreRunner, start: Weights, offsets: Mapping[str, Any], data: Data
) -> dict[str, np.ndarray]:
    """Return weights, shifted so that the loss of the samples is lowest.

    A change of tables by their ``offsets`` changes each score by one.
    """
    return moved(start, offsets, _best_shifts(runner, runner.scores(start, data), data))


def moved(start: Weights, offsets: Mapping[str, Any], shifts: np.ndarray) -> dict[str, np.ndarray]:
    """Return weights whose scores are shifted by a constant for each output."""
    found = dict(start)
    for name, offset in offsets.items():
        array = start[name]
        if np.ndim(offset):  # weights of shape (k, n)
            move = np.multiply.outer(shifts, offset).reshape(array.shape)
        else:
            move = offset * (shifts if array.ndim > 1 or array.size == len(shifts) else shifts[0])
        found[name] = (array + move).astype(array.dtype)
    return found


def unseen_shifts(
    problem: Problem, runner: ScoreRunner, samples: Samples, data: Data, random_state: np.random.RandomState
) -> np.ndarray | None:
    """Return shifts for the samples of a fit, zeros if none is better; None if clones cannot be fitted.

    Clones that have not seen a sample predict it: the errors of the model itself are too small.
    """
    unseen = unseen_predictions(problem, samples, data, random_state, "predict")
    if unseen is None or not weights_of(unseen[0]).any():
        return None
    part, scores = unseen[0], unseen[1].reshape(len(unseen[1]), -1).astype(problem.dtype)
    shifts = _best_shifts(runner, scores, part)
    table = np.stack([runner.losses(own, part) for own in (scores, scores + shifts.astype(scores.dtype))])
    best = best_of(table.astype(np.float64), weights_of(part), [None], Pull.evidence)
    return np.zeros_like(shifts) if best is None else shifts


def _best_shifts(runner: ScoreRunner, scores: np.ndarray, data: Data) -> np.ndarray:
    """Return the change of each output that gives the samples the lowest loss."""
    weights, shifts = weights_of(data), np.zeros(scores.shape[1])
    for output, own in enumerate((data.y.reshape(scores.shape) - scores).T):
        losses = partial(losses_at, runner, data, scores, output)
        shifts[output] = best_shift(losses, own[weights > 0].astype(np.float64), weights)
    return shifts


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


def offsets_of(configuration: Configuration, problem: Problem) -> dict[str, Any]:
    """Return the changes of weights that change the scores by one; nothing for the model's own loss.

    The pull keeps the values of leaves and of neighbours near the old ones, one by one. A loss with another
    optimum, such as a quantile, requires a shift of all of them.
    """
    if not _may_shift(configuration, problem):
        return {}
    part = fitted_part(problem.source)
    rule = capability_of(part, ShiftedScores)
    offset = None if rule is None else rule.offset(part)
    if rule is None or offset is None:
        return {}
    known = {name: problem.trainable.parameters[name] for name in problem.trainable.trained}
    if rule.attribute:
        return {name: offset for name, own in known.items() if own.attribute == rule.attribute}
    return {name: offset for name, own in known.items() if own.role == "table"}


def offsets_of_stages(
    configuration: Configuration, problem: Problem, task: TrainingTask, data: Data
) -> dict[str, Any]:
    """Return the same for boosting, whose scores are sums over trees."""
    if not _may_shift(configuration, problem) or data.y[0].size > 1:
        return {}
    if capability_of(fitted_part(problem.source), BoostedStages) is None:
        return {}
    tables, inputs = looked_up_tables(task, data), task.inputs(data)
    return {name: 1 / inputs[feature].shape[1] for name, feature in tables.items() if len(tables) == 1}


def _may_shift(configuration: Configuration, problem: Problem) -> bool:
    """Return whether all weights of a model are trained by another loss of scores in units of the labels."""
    if problem.loss is None or problem.source is None:
        return False
    is_other = not problem.has_default_loss and problem.link_of_labels == "identity"
    return is_other and configuration.conversion.weights_to_train is None
