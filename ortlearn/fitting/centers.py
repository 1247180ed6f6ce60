"""Weights towards which a warm start is regularised, other than the starting weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..comparison.adaptation import Weights, weights_of
from ..data.samples import Data
from ..inference.score_runner import ScoreRunner
from ..models import fitted_part
from ..models.capabilities import ShiftedTables, capability_of
from ..problem.configuration import Configuration
from ..training.solver_loop import standardised_weights
from .start import Start

__all__ = ["centers"]


def centers(configuration: Configuration, start: Start, step: Any) -> dict[str, Callable[[Data], Weights]]:
    """Return functions from samples to the weights of each other center."""
    found: dict[str, Callable[[Data], Weights]] = {
        name: partial(standardised_weights, step, weights)
        for name, weights in start.others(step.task).items()
    }
    offset = _offset(configuration, start)
    if offset is not None:
        runner = ScoreRunner(step.task, configuration.runtime)
        found["shifted"] = partial(_shifted, runner, start.weights, offset)
    return found


def _offset(configuration: Configuration, start: Start) -> float | None:
    """Return the change of all weights that changes each score by one; None for the model's own loss.

    The pull keeps the values of leaves and of neighbours near the old ones, one by one. A loss with another
    optimum, such as a quantile, requires a shift of all of them.
    """
    problem = start.problem
    if configuration.loss is None or problem.source is None or not problem.predicts_labels:
        return None
    if configuration.conversion.weights_to_train is not None:
        return None
    if any(problem.trainable.parameters[name].role != "table" for name in start.weights):
        return None
    part = fitted_part(problem.source)
    tables = capability_of(part, ShiftedTables)
    return None if tables is None else tables.offset(part)


def _shifted(runner: ScoreRunner, start: Weights, offset: float, data: Data) -> Weights:
    """Return the weights, all shifted such that the loss of the samples is lowest."""
    from scipy.optimize import minimize_scalar  # slow import

    scores, share = runner.scores(start, data), weights_of(data)
    residuals, shifts = data.y.reshape(scores.shape) - scores, np.zeros(scores.shape[1], scores.dtype)
    for output, (low, high) in enumerate(zip(residuals.min(axis=0), residuals.max(axis=0), strict=True)):

        def loss(shift: float, output: int = output) -> float:
            moved = scores.copy()
            moved[:, output] += shift
            return float(share @ runner.losses(moved, data))

        if low < high:
            shifts[output] = minimize_scalar(loss, bounds=(low, high), method="bounded").x
    return {name: array + offset * (shifts if array.ndim > 1 else shifts[0]) for name, array in start.items()}
