"""The candidates of a warm start, compared by validation samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..comparison.candidates import Candidate, Grown, KeptStart, LeafMeans, Pull, Setting
from ..comparison.choice import choose
from ..comparison.evidence import bounded
from ..comparison.measures import Measure, Part, Weights, folds
from ..inference.score_runner import ScoreRunner
from ..models import find_definition, fitted_part
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.fitting import is_fitted
from ..problem.configuration import Configuration
from ..problem.samples import Samples
from ..training.loop import LoopSettings
from .growth import Growth
from .run import new_step
from .start import Start
from .validation import Validation
from .warm_starts import setting_of

__all__ = ["chosen_candidate"]

#: Iterations of the solver for each candidate, from the weights of the previous one of its family.
ITERATIONS = 20


@dataclass(frozen=True)
class HeldOutSamples(Measure):
    """Losses of held-out samples: of given ones, or of those that each fold leaves out.

    Attributes
    ----------
    runner : ScoreRunner
        Sessions for scores and losses.
    whole : Part
        All samples to train on.
    given : Part or None
        Given samples to measure on.
    numbers : list of (ndarray, ndarray)
        Without given ones, indices of the samples that each fold keeps and leaves out.
    is_bounded : bool
        Whether losses are those of a classifier, which are bounded.
    """

    runner: ScoreRunner
    whole: Part
    given: Part | None
    numbers: list[tuple[np.ndarray, np.ndarray]]
    is_bounded: bool

    def parts(self) -> Iterator[tuple[Part, Part]]:
        if self.given is not None:
            yield self.whole, self.given
        for kept, left_out in self.numbers:
            yield self.whole.take(kept), self.whole.take(left_out)

    def scores(self, weights: Weights, part: Part) -> np.ndarray:
        return self.runner.scores(weights, part.data)

    def losses(self, scores: np.ndarray, part: Part) -> np.ndarray:
        losses = self.runner.losses(scores, part.data)
        return bounded(losses) if self.is_bounded else losses


def chosen_candidate(
    configuration: Configuration,
    start: Start,
    samples: Samples,
    settings: LoopSettings,
    validation: Validation | None,
    random_state: np.random.RandomState,
    growth: Growth | None,
) -> Candidate:
    """Return the candidate of a warm start with the lowest loss on validation samples."""
    step, data, prepare = new_step(configuration, start)
    if validation is None and (len(data) < 2 or _contains_training_samples(configuration, start)):
        return KeptStart()
    classes, given = start.problem.encoder.class_indices(data.y), None
    numbers = [] if validation is not None else list(folds(classes, len(data), random_state))
    if validation is not None:
        given = Part(prepare(validation.data), validation.samples)
    runner = ScoreRunner(step.task, configuration.runtime)
    measure = HeldOutSamples(runner, Part(data, samples), given, numbers, classes is not None)
    max_iter = min(ITERATIONS, settings.max_iter)
    settings = replace(settings, max_iter=max_iter, watch=None, verbose=0, exc=False, keeps_history=False)
    setting = setting_of(configuration, start, (step, data), settings, growth)
    choice = choose(setting, measure, _rounds(setting))
    step.release()
    return choice.candidate


def _rounds(setting: Setting) -> list[list[Candidate]]:
    """Return candidates in rounds: those that require more evidence, and then trees, are compared later.

    First the leaves of a forest are chosen, then the share of new trees; both at once was not better.
    """
    kinds: list[Any] = [LeafMeans] if setting.leaf_means is not None else [Pull, *setting.centers]
    rounds: list[list[Any]] = [
        [kind for kind in kinds if kind.evidence == evidence]
        for evidence in sorted({kind.evidence for kind in kinds})
    ]
    rounds += [] if setting.growth is None else [[Grown]]
    return [[kind(strength) for kind in own for strength in kind.strengths] for own in rounds]


def _contains_training_samples(configuration: Configuration, start: Start) -> bool:
    """Return whether a model was just fitted on the samples and may store them as parameters.

    Samples held out of the training would not be independent of such a model.
    """
    source = configuration.source
    if is_onnx_source(source) or is_fitted(source):
        return False
    definition = find_definition(fitted_part(start.problem.source))
    return definition is not None and bool(definition.not_in_objective)
