"""Ensembles of trees that get trees of new samples, in warm starts and in streams."""

from __future__ import annotations

import copy
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from ..comparison.evidence import best_of, bounded, improves
from ..comparison.measures import misclassified, weights_of
from ..exceptions import OrtlearnError
from ..inference.score_runner import ScoreRunner
from ..models import fitted_part
from ..models.capabilities import GrowingEnsemble, ReplacedModel, capability_of, with_few_members
from ..models.registry import inner_part
from ..preprocessing.columns import count_samples
from ..preprocessing.initial_fit import after_steps, fit_clone, is_fitted, labels_within, reached
from ..problem.configuration import Configuration
from ..problem.objective_weights import read_data
from ..problem.samples import Samples
from ..quiet import quiet
from ..targets.given_classes import PartialFitClasses
from ..targets.label_arrays import dense_labels
from ..training.state import TrainingState
from .fitted_model import FittedModel
from .start import Start, new_start

__all__ = ["Growth", "TreeStream"]

#: Fewest new samples that decide about an ensemble; fewer, and those that lack a class, wait for others.
JUDGES = 50
#: Largest number of trees, relative to that of the first model.
LARGEST = 1.5
#: Standard errors by which older trees must decrease the loss to be kept.
EVIDENCE = 1.0
#: Standard errors by which a loss exceeds those of the last calls after a change; number of these; weights of
#: the losses before and at the change in the bound of the next one.
CHANGE, CALLS, LASTING = 3.0, 5, (3, 1)


@dataclass(frozen=True)
class Growth:
    """An ensemble to which trees fitted on new samples may be added."""

    configuration: Configuration
    source: Any  # fitted model, or a pipeline that ends with it
    rule: GrowingEnsemble  # how two ensembles are averaged
    samples: Samples
    seed: int  # seed of the fit
    expected: PartialFitClasses | None = None  # all classes
    was_given: bool = True  # whether the model was fitted before
    of_stream: bool = False  # whether a given model must not unlearn classes that samples lack

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        start: Start,
        samples: Samples,
        expected: PartialFitClasses | None = None,
        of_stream: bool = False,
    ) -> Growth | None:
        """Return the growth of a model; None if it cannot grow, or is not trained with its own objective."""
        chosen = configuration.conversion.weights_to_train is not None or not start.problem.has_default_loss
        source = start.problem.source
        if chosen or source is None:
            return None
        was_given = is_fitted(configuration.source)
        if not of_stream and not (configuration.warm_start and was_given):
            return None
        part = fitted_part(source)
        rule = capability_of(part, GrowingEnsemble)
        if rule is None and start.problem.doubt and not of_stream:
            rule = ReplacedModel()
        kind = Refit if isinstance(rule, ReplacedModel) else cls
        if kind is Refit and not configuration.is_default:
            return None
        if rule is None or not rule.grows(part, count_samples(samples.X)) or part is not reached(source):
            return None
        return kind(configuration, source, rule, samples, start.state.seed, expected, was_given, of_stream)

    def fitted(self, samples: Samples, to_compare: bool = False) -> Any:
        """Return a clone fitted on samples; None if the fit fails or a class is missing."""
        part, random_state = fitted_part(self.source), np.random.RandomState(self.seed % 2**32)
        known = getattr(part, "classes_", None)
        if known is not None and self.rule.ignores_weightless and not (self.of_stream and self.was_given):
            samples = _with_classes(samples, known)
        X, y = self.after_steps(samples.X), labels_within(self.source, samples.y)
        part = with_few_members(part) if to_compare else part
        try:
            model = fit_clone(part, X, y, sample_weight=samples.sample_weight, random_state=random_state)
        except (ValueError, IndexError):  # too few samples for its parameters, or all are equal
            return None
        return model if known is None or np.array_equal(model.classes_, known) else None

    def new_scores(self, samples: Samples, others: Samples) -> tuple[np.ndarray | None, Any]:
        """Return scores and errors of other samples by a model fitted on samples; None if the fit fails."""
        new, scores = self.fitted(samples, to_compare=True), None
        with suppress(ValueError):  # fewer samples than neighbours
            scores = None if new is None else self.scores_of(new, others)
        return scores, None if scores is None else self.errors_of(new, others)

    def scores_of(self, part: Any, samples: Samples) -> Any:
        """Return scores of samples by a model at the end of the source; None if they cannot be computed."""
        return self.rule.scores_of(part, self.after_steps(samples.X))

    def errors_of(self, part: Any, samples: Samples) -> np.ndarray | None:
        """Return which samples are misclassified; None if that is not compared."""
        return None

    def completed(self, model: FittedModel, share: float) -> FittedModel:
        """Return a trained model with trees fitted on all samples, which get a share of the scores."""
        part = self.fitted(self.samples)
        if part is None or not self.is_sound(part):
            return model
        if share < 1:
            part = self.rule.joined(fitted_part(model.to_sklearn()), part, share)
        start = self.start_with(model.state, part)
        grown = FittedModel(start.problem, start.features, start.state)
        grown.open(self.configuration.runtime)
        return grown

    def is_sound(self, part: Any) -> bool:
        """Return whether a fit predicts its samples as well as the model before: some are unstable."""
        return True

    def start_with(self, state: TrainingState, part: Any) -> Start:
        """Return the start of a model with another ensemble, after a training that ended with a state."""
        start = self._start_of(part, self.samples)
        state = state.back_to(start.weights)
        return replace(start, state=replace(state, anchor=start.weights, start_kept=False, grown=True))

    def _start_of(self, part: Any, samples: Samples, compares: bool = True) -> Start:
        """Return the start of another model on samples."""
        known = replace(self.configuration, source=_replaced(self.source, part))
        state, expected = np.random.RandomState(self.seed % 2**32), self.expected
        with quiet():  # the same warnings were shown before
            return new_start(known, samples, state, self.seed, None, expected, compares=compares)

    def after_steps(self, X: Any) -> Any:
        """Return X after the preprocessing steps."""
        return after_steps(self.source, X)


class Refit(Growth):
    """A model that may be fitted again, as its training has another objective than its fit."""

    def scores_of(self, part: Any, samples: Samples) -> Any:
        try:
            start = self._start_of(part, samples, compares=False)
        except (ValueError, OrtlearnError):  # such as a category that the samples of the fit lack
            return None
        runner = ScoreRunner(start.problem.task(False), self.configuration.runtime)
        return runner.scores(start.weights, start.data)

    def is_sound(self, part: Any) -> bool:
        X, errors = self.after_steps(self.samples.X), list[float]()
        y = dense_labels(labels_within(self.source, self.samples.y))
        for own in (part, fitted_part(self.source)):
            predicted = dense_labels(own.predict(X)).reshape(y.shape)
            wrong = predicted != y if is_classifier(part) else (predicted - y) ** 2
            errors.append(np.average(wrong, axis=0, weights=self.samples.sample_weight).sum())
        return bool(errors[0] <= errors[1])

    def errors_of(self, part: Any, samples: Samples) -> np.ndarray | None:
        if not is_classifier(part) or np.ndim(samples.y) > 1:
            return None
        return np.asarray(part.predict(self.after_steps(samples.X)) != np.asarray(samples.y))


def _with_classes(samples: Samples, classes: np.ndarray) -> Samples:
    """Return samples with the first one again, of weight zero, for each class that they lack."""
    missing = np.setdiff1d(classes, samples.y)
    if not len(missing):
        return samples
    n_samples = count_samples(samples.X)
    taken = samples.take(np.append(np.arange(n_samples), np.zeros(len(missing), dtype=int)))
    weights = np.ones(len(taken.y)) if taken.sample_weight is None else np.array(taken.sample_weight)
    weights[n_samples:] = 0.0
    return Samples(taken.X, np.append(np.ravel(samples.y), missing), weights)


def _replaced(source: Any, part: Any) -> Any:
    """Return a copy with another estimator at the end of pipelines and wrappers."""
    found, inner = copy.copy(source), None if isinstance(source, Pipeline) else inner_part(source)
    if isinstance(source, Pipeline):
        found.steps = [*source.steps[:-1], (source.steps[-1][0], _replaced(source.steps[-1][1], part))]
    elif inner is not None:
        setattr(found, inner[0], _replaced(inner[1], part))
    else:
        return part
    return found


@dataclass(frozen=True)
class Window:
    """The last samples of a stream, and the ensembles of a call that the next samples compare."""

    samples: Samples
    size: int  # largest number of samples
    n_trees: int  # of the first model
    old: Any  # the ensemble before its last trees were added
    new: Any  # ensemble fitted on the window; None before the first one
    losses: tuple[float, ...] = ()  # of the last calls since a change, before their samples were learnt
    waiting: Samples | None = None  # too few to decide, and not yet in the window
    forgot: tuple[float, ...] = ()  # losses before and at a change, if the last call forgot earlier samples

    def with_more(self, samples: Samples) -> Window:
        """Return the window after new samples."""
        joined = self.samples.joined(samples)
        return replace(self, samples=joined.take(np.arange(count_samples(joined.X))[-self.size :]))


@dataclass(frozen=True)
class TreeStream:
    """A call of ``partial_fit`` for an ensemble that may grow.

    Each call fits an ensemble on the window. New samples decide, before they are learnt, which share it gets:
    that of the last call is compared with older trees.
    """

    configuration: Configuration
    start: Start
    samples: Samples  # of this call
    last: FittedModel | None
    growth: Growth

    def trained(self) -> tuple[float, Start, Window]:
        """Return the loss of the samples before they are learnt, and the start and the window afterwards."""
        start, last = self.start, self.last
        source, known = (start.problem.source, None) if last is None else (last.to_sklearn(), last.window)
        if known is not None and known.waiting is not None:
            samples = known.waiting.joined(self.samples)
            joined = replace(start, data=read_data(start.problem, samples, start.features))
            known = replace(known, waiting=None)
            return replace(self, samples=samples, start=joined)._after(fitted_part(source), known)
        return self._after(fitted_part(source), known)

    def _after(self, part: Any, known: Window | None) -> tuple[float, Start, Window]:
        """Return the same, given the ensemble and the window before."""
        start, rule = self.start, self.growth.rule
        scores = self.growth.scores_of(part, self.samples)
        weights = weights_of(start.data)
        losses = self._losses([scores], self.samples)[0]
        loss = float(np.average(losses, weights=weights))
        if known is None and self.last is None and not self.growth.was_given:  # fitted on these samples
            return loss, start, self._window(part, part)
        if len(weights) < JUDGES or (len(weights) < rule.window(part) and self._lacks_classes(known)):
            known = known or replace(self._window(part, None), samples=self.samples.take(np.arange(0)))
            return loss, start, replace(known, waiting=self.samples)
        window = self._window(part, None) if known is None else known.with_more(self.samples)
        has_changed = self._has_changed(losses, loss, window)
        if has_changed:  # earlier samples are forgotten
            window = replace(window, samples=self.samples)
        share = 1.0 if has_changed else self._share(window, weights)
        new = self.growth.fitted(window.samples)
        if new is not None and share > 0:
            part = rule.extended(window.old, new, share, round(LARGEST * window.n_trees))
            start = replace(self.growth, samples=window.samples).start_with(start.state, part)
        keeps_old = share == 0 or has_changed  # to compare it once more
        old, recent = window.old if keeps_old else part, () if has_changed else (*window.losses, loss)
        forgot = (float(np.mean(window.losses)), loss) if has_changed and not window.forgot else ()
        new = new or window.new
        return loss, start, replace(window, new=new, old=old, losses=recent[-CALLS:], forgot=forgot)

    def _lacks_classes(self, known: Window | None) -> bool:
        """Return whether the samples of a call, which would decide, lack a class that was learnt."""
        classes = self.start.problem.targets.classes
        if classes is None or isinstance(classes, list):
            return False
        learnt = classes if known is None or self.growth.was_given else known.samples.y
        return len(np.setdiff1d(learnt, self.samples.y)) > 0

    def _has_changed(self, losses: np.ndarray, loss: float, window: Window) -> bool:
        """Return whether labels depend on features in another way, or those of the last call did in two."""
        if window.forgot:
            return bool(loss > np.average(window.forgot, weights=LASTING))
        recent = window.losses
        error = losses.std() * np.sqrt((1 + 1 / max(len(recent), 1)) / len(losses))
        return len(recent) > 1 and error > 0 and improves(loss - float(np.mean(recent)), error, CHANGE)

    def _window(self, old: Any, new: Any) -> Window:
        """Return the first window."""
        rule = self.growth.rule
        return Window(self.samples, rule.window(old), rule.n_trees(old), old, new)

    def _share(self, window: Window, weights: np.ndarray) -> float:
        """Return the share of new trees with the lowest loss on the samples of this call."""
        growth, rule, new, judges = self.growth, self.growth.rule, window.new, self.samples
        shares = rule.stream_shares
        if new is None:  # the first call for a fitted model: half of the samples decide
            order = np.random.RandomState(self.start.state.seed % 2**32).permutation(len(weights))
            judges, weights = judges.take(order[::2]), weights[order[::2]]
            new, shares = growth.fitted(self.samples.take(order[1::2])), shares[::-1]
        if new is None or not weights.any():
            return 0.0
        old, scores = (growth.scores_of(own, judges) for own in (window.old, new))
        if old is None or scores is None:
            return 0.0
        rows = [rule.mixed_scores(old, scores, share) for share in shares]
        losses = self._losses(rows, judges)
        if self.start.problem.targets.classes is not None:
            losses = bounded(losses)
        best = best_of(losses, weights, shares[1:], EVIDENCE)
        return shares[0 if best is None else best + 1]

    def _losses(self, scores: list[np.ndarray], samples: Samples) -> np.ndarray:
        """Return the losses of some scores, or errors of votes, float64 of shape (n_scores, n_samples)."""
        problem = self.start.problem
        data = read_data(problem, samples, self.start.features)
        if self.growth.rule.by_votes:
            classes = problem.encoder.class_indices(data.y)
            return np.array([misclassified(own, classes) for own in scores])
        runner = ScoreRunner(problem.task(False), self.configuration.runtime)
        return np.array([runner.losses(own.astype(problem.dtype), data) for own in scores], dtype=np.float64)
