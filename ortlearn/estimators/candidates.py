"""Choice among the candidates for a training from a model's own weights, by samples that are left out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .. import conversion
from ..models import find_definition, fitted_part
from ..training import Data, LoopSettings
from .adaptation import Candidate, Weights, bounded, choose, folds, trained
from .configuration import Configuration
from .growth import Growth
from .samples import Samples
from .score_runner import ScoreRunner
from .starting import Start
from .training_run import new_step
from .validation import Validation

__all__ = ["chosen_candidate"]


def chosen_candidate(
    configuration: Configuration,
    start: Start,
    samples: Samples,
    settings: LoopSettings,
    validation: Validation | None,
    random_state: np.random.RandomState,
) -> Candidate:
    """Return how a training from a model's own weights is to be held back, and how its ensemble grows."""
    problem, (step, data, prepare) = start.problem, new_step(configuration, start)
    if validation is None and (len(data) < 2 or _holds_its_samples(configuration, start)):
        return Candidate(math.inf)
    classes = problem.encoder.class_numbers(data.y)
    numbers = [] if validation is not None else list(folds(classes, len(data), random_state))
    runner, others = ScoreRunner(step.task, configuration.runtime), start.others(step.task)

    def parts() -> Iterator[tuple[Data, Data]]:
        if validation is not None:
            yield data, prepare(validation.data)
        yield from ((data.take(kept), data.take(left_out)) for kept, left_out in numbers)

    def losses(scores: np.ndarray, part: Data) -> np.ndarray:
        found = runner.losses(scores, part)
        return found if classes is None else bounded(found)

    def measure(weights: Weights, part: Data) -> np.ndarray:
        return losses(runner.scores(weights, part), part)

    found = choose(step, parts(), start.weights, others, settings, measure)
    growth = Growth.of(configuration, problem, samples, start.state.seed)
    if growth is not None:
        pairs = ((samples.take(kept), samples.take(left_out)) for kept, left_out in numbers)
        given = pairs if validation is None else [(samples, validation.samples)]
        scored = (
            (runner.scores(trained(step, part, start.weights, others, settings, found), rest), rest)
            for part, rest in parts()
        )
        found = replace(found, share=growth.share(given, scored, losses))
    step.release()
    return found


def _holds_its_samples(configuration: Configuration, start: Start) -> bool:
    """Return whether a model was fitted on these very samples, and holds them as its parameters.

    Those that are left out of a training are in it all the same, and cannot judge it.
    """
    source = configuration.source
    if conversion.is_onnx_source(source) or conversion.is_fitted(source):
        return False
    definition = find_definition(fitted_part(start.problem.source))
    return definition is not None and bool(definition.not_in_objective)
