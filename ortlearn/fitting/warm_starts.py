"""Warm starts: which candidates are compared, on which samples, and with which settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..comparison.candidates import (
    Candidate,
    FreshPull,
    Grown,
    KeptStart,
    LeafEstimate,
    LeafMeans,
    Pull,
    RestandardisedPull,
    Setting,
    ShiftedPull,
)
from ..comparison.evidence import choose
from ..comparison.measures import Measure, Part, Weights, folds_without_copies, misclassified, weights_of
from ..data.samples import Data
from ..inference.running import LiveInference
from ..inference.score_runner import ScoreRunner
from ..models import find_definition, fitted_part, objective_of
from ..models.capabilities import Bags, GrowingEnsemble, capability_of
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.initial_fit import is_fitted, reached
from ..problem.configuration import Configuration
from ..problem.samples import Samples
from ..training.graphs.task import TrainingTask
from ..training.settings import LoopSettings
from ..training.solver_loop import run_solver
from ..training.solvers.variables import Variables
from ..training.state import TrainingState
from .leaves.mixtures import Mixtures
from .leaves.shares import LeafShares
from .leaves.shifts import moved, offsets_of, offsets_of_stages, shifted, unseen_shifts
from .seen_samples import is_seen
from .start import Start
from .validation import Validation

if TYPE_CHECKING:  # only ensembles need them
    from .growth import Growth
    from .leaves.estimates import LeafEstimates

__all__ = ["ESTIMATE", "WarmStart", "leaf_estimates", "setting_of", "shifted_start"]

#: Pulls towards alternative starting weights, by the name in :meth:`~ortlearn.fitting.start.Start.others`.
PULLS = {"fresh": FreshPull, "restandardised": RestandardisedPull}
#: Iterations of the solver for each candidate, from the weights of the previous one of its kind.
ITERATIONS = 20
#: Relative decrease of the objective in an iteration that ends the training of a candidate: far below the
#: standard errors with which candidates are compared.
PRECISION = 1e-5
#: Estimates of leaves: a shift of all values, quantiles of residuals, and quantiles of labels.
ESTIMATES = ((1.0, 1.0), (1.0, 0.5), (1.0, 0.0), (0.5, 0.0), (0.0, 0.0))
#: Number of samples with weight below which a comparison has no evidence.
FEWEST_SAMPLES = 5
#: The one that is used without a comparison.
ESTIMATE = LeafEstimate(1.0, 0.5)


@dataclass(frozen=True)
class WarmStart:
    """A warm start whose candidates are compared."""

    samples: Samples
    random_state: np.random.RandomState  # draws the folds
    growth: Growth | None = None  # new trees, if the model is an ensemble that may grow
    candidate: Candidate | None = None  # the one that is chosen, such as that of a resumed training
    # Why the start is kept; empty if that needs no warning.
    reason: str = "held-out samples do not show an improvement, or none can be held out"

    def known(
        self, configuration: Configuration, start: Start, validation: Validation | None
    ) -> Candidate | None:
        """Return the candidate if none are compared."""
        if self.candidate is None and validation is None:
            n_samples = np.count_nonzero(weights_of(start.data))
            if n_samples < FEWEST_SAMPLES or _contains_training_samples(configuration, start):
                return KeptStart()
        return self.candidate

    def chosen(
        self,
        configuration: Configuration,
        start: Start,
        prepared: tuple[Any, Data, Callable[[Data], Data]],
        settings: LoopSettings,
        validation: Validation | None,
    ) -> Candidate:
        """Return the candidate with the lowest loss on validation samples."""
        step, data, prepare = prepared
        classes, numbers, given = start.problem.encoder.class_indices(data.y), [], None
        if validation is None:
            numbers = folds_without_copies(classes, start.data, self.random_state)
            if not numbers:
                return KeptStart()
        else:
            given = Part(prepare(validation.data), validation.samples)
        runner = ScoreRunner(step.task, configuration.runtime)
        problem, whole, predictions = start.problem, Part(data, self.samples), None
        shares, mixed = LeafShares.of(problem, step.task, data), None
        if shares is not None and not shares.is_own:
            mixtures = Mixtures(shares, runner, start.weights, self.random_state)
            if data.members is not None or not is_fitted(configuration.source):
                return mixtures.of_seen_samples(self.samples, data)
            mixed = mixtures.of_new_samples(data)
        is_bound = problem.loss is not None and problem.loss.by_errors
        differs = bool(problem.doubt) and (is_bound or objective_of(problem.source, 1.0) is not None)
        if problem.doubt and classes is not None:
            predictions = LiveInference(problem, problem.trainable.model, configuration.runtime)
        rule = capability_of(fitted_part(problem.source), GrowingEnsemble) if predictions else None
        by_votes = rule is not None and rule.by_votes
        held_out = HeldOutVotes if by_votes else HeldOutSamples
        bounds = problem.targets.classes is not None and not by_votes
        known = runner, whole, given, numbers, bounds, predictions
        measure = held_out(*known, differs, keeps_losses=bounds and not is_bound)
        max_iter = min(ITERATIONS, settings.max_iter)
        short = replace(settings, max_iter=max_iter, watch=None, verbose=0, exc=False, keeps_history=False)
        setting = setting_of(configuration, start, prepared, short, self.growth, precision=PRECISION)
        return choose(setting, measure, _rounds(setting, mixed)).candidate


@dataclass(frozen=True)
class HeldOutSamples(Measure):
    """Losses of held-out samples: of given ones, or of those that each fold leaves out."""

    runner: ScoreRunner
    whole: Part  # all samples to train on
    given: Part | None  # samples to measure on
    numbers: list[tuple[np.ndarray, np.ndarray]]  # otherwise, what each fold keeps and leaves out
    bounds: bool
    predictions: LiveInference | None = None  # None if misclassified samples are not compared
    by_errors: bool = False
    keeps_losses: bool = False

    def parts(self) -> Iterator[tuple[Part, Part]]:
        if self.given is not None:
            yield self.whole, self.given
        for kept, left_out in self.numbers:
            yield self.whole.take(kept), self.whole.take(left_out)

    def scores(self, weights: Weights, part: Part) -> np.ndarray:
        return self.runner.scores(weights, part.data)

    def losses(self, scores: np.ndarray, part: Part) -> np.ndarray:
        return self.runner.losses(scores, part.data)

    def errors(self, weights: Weights, part: Part) -> np.ndarray | None:
        if self.predictions is None:
            return None
        problem = self.predictions.problem
        labels = problem.targets.classes[problem.encoder.class_indices(part.data.y)]
        return np.ravel(self.predictions.with_weights(weights).predict(part.data.X) != labels)


class HeldOutVotes(HeldOutSamples):
    """Errors of held-out samples, for a classifier whose labels are votes."""

    def scores(self, weights: Weights, part: Part) -> np.ndarray:
        assert self.predictions is not None
        found = self.predictions.with_weights(weights).decision_function(part.data.X)
        return found.reshape(len(found), -1)

    def losses(self, scores: np.ndarray, part: Part) -> np.ndarray:
        assert self.predictions is not None
        return misclassified(scores, self.predictions.problem.encoder.class_indices(part.data.y))

    def errors(self, weights: Weights, part: Part) -> None:
        return None


def setting_of(
    configuration: Configuration,
    start: Start,
    prepared: tuple[Any, Data, Callable[[Data], Data]],
    settings: LoopSettings,
    growth: Growth | None = None,
    state: TrainingState | None = None,
    estimates: LeafEstimates | None = None,
    **hooks: Any,
) -> Setting:
    """Return the setting of candidates, given the step of a solver, its samples, and their preparation.

    ``state`` is that of a training to resume, by default that of the start; ``estimates`` are those of
    :func:`leaf_estimates` if they are known.
    """
    step, data, prepare = prepared

    @lru_cache(maxsize=1)  # successive candidates are trained on the same samples
    def variables(data: Data, pulled: bool) -> Variables:
        spread, measured = start.label_moments()[1], start.samples.measure(prepare)
        return Variables(step, start.weights, data, spread, measured, pulled)

    def solve(data: Data, weights: dict, pull: float = 0.0, **options: Any) -> TrainingState:
        known = variables(data, pull > 0)
        return run_solver(known, weights, settings, state or start.state, pull=pull, **options, **hooks)

    def standardised(weights: Weights, data: Data) -> Weights:
        return variables(data, True).standardised(weights)

    centers: dict[type, Callable[[Data], Weights]] = {
        PULLS[name]: partial(standardised, weights) for name, weights in start.others(step.task).items()
    }
    shares = LeafShares.of(start.problem, step.task, data)
    estimates = estimates or leaf_estimates(configuration, start, step.task, data)
    known = configuration, start.problem
    offsets = offsets_of(*known) or offsets_of_stages(*known, step.task, data)
    if offsets and estimates is None:
        runner = ScoreRunner(step.task, configuration.runtime)
        centers[ShiftedPull] = partial(shifted, runner, start.weights, offsets)
    means = None if shares is None else partial(shares.averaged, start.weights)
    evidence = -math.inf if growth is None else growth.rule.leaf_evidence(fitted_part(growth.source))
    local = None if estimates is None else estimates.estimated
    return Setting(start.state, solve, centers, means, local, growth, evidence)


def leaf_estimates(
    configuration: Configuration, start: Start, task: TrainingTask, data: Data
) -> LeafEstimates | None:
    """Return the estimates of the leaves of trees for another loss than their own; None for other models."""
    offsets = offsets_of(configuration, start.problem)
    if offsets.keys() != start.weights.keys():
        return None
    from .leaves.estimates import LeafEstimates

    offset = next(iter(offsets.values()))
    return LeafEstimates.of(start.problem, configuration.runtime, task, start.weights, data, offset)


def shifted_start(configuration: Configuration, start: Start, samples: Samples) -> Start | None:
    """Return the start with another loss than that of its fit to the samples; None if these are new.

    This applies to models that reproduce the samples of their fit, such as neighbours, and to fitted trees if
    it is unknown which of the samples each has seen. It is the same start if clones do not show that a shift
    of the scores is better.
    """
    offsets, source = offsets_of(configuration, start.problem), start.problem.source
    scores, part = start.problem.trainable.scores, None if source is None else fitted_part(source)
    is_fit = scores is not None and not scores.target_transformers  # to labels that are not transformed
    if not (offsets and is_fit) or part is not reached(source):
        return None
    is_new, known = not is_fitted(configuration.source), start.data.members is not None
    if capability_of(part, Bags) is not None and (is_new or known or configuration.is_trained):
        return None
    if not is_new and not is_seen(configuration, start, samples, False):
        return None
    runner = ScoreRunner(start.problem.task(False), configuration.runtime)
    random_state = np.random.RandomState(start.state.seed % 2**32)
    shifts = unseen_shifts(start.problem, runner, samples, start.data, random_state)
    if shifts is None or not shifts.any():
        return None if shifts is None else start
    return replace(start, state=start.state.with_weights(moved(start.weights, offsets, shifts)))


def _rounds(setting: Setting, mixed: list[Candidate] | None) -> list[list[Candidate]]:
    """Return candidates in rounds: those that require more evidence, and then trees, are compared later.

    First the leaves of a forest are chosen, then the share of new trees; both at once was not better. After
    a drift, leaves with many samples are better trained together than alone.
    """
    kinds: list[Any] = [LeafMeans] if setting.leaf_means is not None else [Pull, *setting.centers]
    rounds: list[list[Any]] = [
        [kind for kind in kinds if kind.evidence == evidence]
        for evidence in sorted({kind.evidence for kind in kinds})
    ]
    found = [[kind(strength) for kind in own for strength in kind.strengths] for own in rounds]
    if mixed is not None:
        found = [mixed, [Pull(strength) for strength in Pull.strengths[1::2]]]
    elif setting.leaf_estimates is not None:
        found = [[LeafEstimate(*factors) for factors in ESTIMATES]]
    growth = setting.growth
    shares = () if growth is None else growth.rule.shares(fitted_part(growth.source))
    return [*found, [Grown(share) for share in shares]]


def _contains_training_samples(configuration: Configuration, start: Start) -> bool:
    """Return whether a model was just fitted on the samples, and thus depends on held-out ones."""
    source = configuration.source
    if is_onnx_source(source) or is_fitted(source):
        return False
    definition = find_definition(fitted_part(start.problem.source))
    return definition is not None and bool(definition.not_in_objective)
