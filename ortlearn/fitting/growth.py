"""Models that get trees of new samples, or are fitted again on them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from ..comparison.measures import Part
from ..exceptions import OrtlearnError
from ..inference.score_runner import ScoreRunner
from ..models import fitted_part
from ..models.capabilities import (
    BoostedStages,
    GrowingEnsemble,
    ReplacedModel,
    capability_of,
    with_few_members,
)
from ..models.registry import inner_part
from ..preprocessing.columns import count_samples
from ..preprocessing.initial_fit import after_steps, fit_clone, is_fitted, labels_within, reached
from ..problem.configuration import Configuration
from ..problem.samples import Samples
from ..quiet import quiet
from ..targets.given_classes import PartialFitClasses
from ..targets.label_arrays import dense_labels
from ..training.state import TrainingState
from .fitted_model import FittedModel
from .start import Start, new_start

__all__ = ["Growth"]


@dataclass(eq=False)
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
    # Clones and their starts, by the samples that they were fitted on.
    clones: dict[bytes, tuple[Any, Start | None]] = field(default_factory=dict)
    scores_by_methods: Callable[..., np.ndarray | None] | None = None  # of a fitted model and X, if known

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

    def clone(self, samples: Samples, numbers: np.ndarray) -> tuple[Any, Start | None]:
        """Fit and keep a clone on some of all samples; return it with its start on all, if scores need it."""
        part, start = self.fitted(samples.take(numbers), to_compare=True), None
        if part is not None and self.scores_by_methods is None and capability_of(part, BoostedStages) is None:
            start = self._start_of(part, samples, compares=False)
        self.clones[numbers.tobytes()] = part, start
        return part, start

    def new_scores(self, samples: Part, others: Part) -> tuple[np.ndarray | None, Any]:
        """Return scores and errors of other samples by a model fitted on samples; None if the fit fails."""
        scores, key = None, b"" if samples.numbers is None else samples.numbers.tobytes()
        new, start = self.clones.get(key) or (self.fitted(samples.samples, to_compare=True), None)
        if start is not None and others.numbers is not None:
            start = replace(start, data=start.data.take(others.numbers))
        with suppress(ValueError):  # fewer samples than neighbours
            scores = None if new is None else self.scores_of(new, others.samples, start)
        return scores, None if scores is None else self.errors_of(new, others.samples)

    def scores_of(self, part: Any, samples: Samples, start: Start | None = None) -> Any:
        """Return scores of samples by a model at the end of the source; None if they cannot be computed.

        ``start`` is that of the model on the samples, if it is known.
        """
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

    def scores_of(self, part: Any, samples: Samples, start: Start | None = None) -> Any:
        try:
            if self.scores_by_methods is not None:
                return self.scores_by_methods(part, self.after_steps(samples.X))
            start = start or self._start_of(part, samples, compares=False)
        except (ValueError, IndexError, OrtlearnError):  # such as a category that the samples of the fit lack
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
