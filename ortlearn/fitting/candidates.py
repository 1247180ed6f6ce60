"""Choose the regularisation of a warm start by validation samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..comparison.adaptation import EVIDENCE, Candidate, Weights, bounded, choose, folds
from ..data.samples import Data
from ..inference.score_runner import ScoreRunner
from ..models import find_definition, fitted_part
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.fitting import is_fitted
from ..problem.configuration import Configuration
from ..problem.samples import Samples
from ..training.loop import LoopSettings
from .centers import centers
from .growth import Growth
from .leaf_shares import LeafShares
from .run import new_step
from .start import Start
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
    """Return the regularisation of a warm start, and the share of new trees in its ensemble."""
    problem, (step, data, prepare) = start.problem, new_step(configuration, start)
    if validation is None and (len(data) < 2 or _contains_training_samples(configuration, start)):
        return Candidate(math.inf)
    classes = problem.encoder.class_indices(data.y)
    numbers = [] if validation is not None else list(folds(classes, len(data), random_state))
    runner, others = ScoreRunner(step.task, configuration.runtime), centers(configuration, start, step)

    def parts() -> Iterator[tuple[Data, Data]]:
        if validation is not None:
            yield data, prepare(validation.data)
        yield from ((data.take(kept), data.take(left_out)) for kept, left_out in numbers)

    def losses(scores: np.ndarray, part: Data) -> np.ndarray:
        values = runner.losses(scores, part)
        return values if classes is None else bounded(values)

    found: dict[Candidate, list[tuple[np.ndarray, Data]]] = {}

    def measure(weights: Weights, part: Data, candidate: Candidate) -> np.ndarray:
        scores = runner.scores(weights, part)
        found.setdefault(candidate, []).append((scores, part))
        return losses(scores, part)

    shares = LeafShares.of(configuration, problem, step.task, data)
    averaged = None if shares is None else shares.averaged
    growth = Growth.of(configuration, problem, samples, start.state.seed)
    evidence = EVIDENCE if growth is None else growth.ensemble.evidence
    candidate = choose(step, parts(), start.weights, others, settings, measure, averaged, evidence)
    if growth is not None:
        pairs = ((samples.take(kept), samples.take(left_out)) for kept, left_out in numbers)
        given = pairs if validation is None else [(samples, validation.samples)]
        candidate = replace(candidate, share=growth.share(given, found[candidate], losses))
    step.release()
    return candidate


def _contains_training_samples(configuration: Configuration, start: Start) -> bool:
    """Return whether a model was just fitted on the samples and may store them as parameters.

    Samples held out of the training would not be independent of such a model.
    """
    source = configuration.source
    if is_onnx_source(source) or is_fitted(source):
        return False
    definition = find_definition(fitted_part(start.problem.source))
    return definition is not None and bool(definition.not_in_objective)
