"""The setting in which the candidates of a warm start are trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..comparison.candidates import FreshPull, RestandardisedPull, Setting, ShiftedPull
from ..comparison.measures import weights_of
from ..data.samples import Data
from ..inference.score_runner import ScoreRunner
from ..models import fitted_part
from ..models.capabilities import ShiftedTables, capability_of
from ..problem.configuration import Configuration
from ..training.loop import LoopSettings, TrainingResult
from ..training.solver_loop import run_full_batch, standardised_weights
from .growth import Growth
from .leaf_shares import LeafShares
from .start import Start

__all__ = ["setting_of"]

Weights = dict[str, np.ndarray]
#: Pulls towards alternative starting weights, by the name in :meth:`~ortlearn.fitting.start.Start.others`.
PULLS = {"fresh": FreshPull, "restandardised": RestandardisedPull}


def setting_of(
    configuration: Configuration,
    start: Start,
    trained: tuple[Any, Data],
    settings: LoopSettings,
    growth: Growth | None = None,
    **hooks: Any,
) -> Setting:
    """Return the setting of candidates; ``trained`` are the step of a solver and its samples."""
    step, data = trained

    def solve(data: Data, weights: Weights, *, pull: float, toward: Weights) -> TrainingResult:
        return run_full_batch(step, data, weights, settings, pull=pull, toward=toward, **hooks)

    centers: dict[type, Callable[[Data], Weights]] = {
        PULLS[name]: partial(standardised_weights, step, weights)
        for name, weights in start.others(step.task).items()
    }
    offset, shares = (
        _offset(configuration, start),
        LeafShares.of(configuration, start.problem, step.task, data),
    )
    if offset is not None:
        runner = ScoreRunner(step.task, configuration.runtime)
        centers[ShiftedPull] = partial(_shifted, runner, start.weights, offset)
    means = None if shares is None else partial(shares.averaged, start.weights)
    evidence = -math.inf if growth is None else growth.rule.evidence
    return Setting(start.weights, solve, centers, means, growth, evidence)


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
