"""Warm starts of ensembles of trees, which add trees fitted on the new samples."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..models import fitted_part
from ..models.capabilities import GrowingEnsemble, capability_of
from ..preprocessing.columns import count_samples
from ..preprocessing.initial_fit import fit_clone, is_fitted
from ..problem.configuration import Configuration
from ..problem.samples import Samples
from ..quiet import quiet
from ..targets.given_classes import PartialFitClasses
from .fitted_model import FittedModel
from .start import Start, new_start

__all__ = ["Growth"]


@dataclass(frozen=True)
class Growth:
    """An ensemble to which trees fitted on new samples may be added."""

    configuration: Configuration
    source: Any  # fitted model, or a pipeline that ends with it
    rule: GrowingEnsemble  # how two ensembles are averaged
    samples: Samples
    seed: int  # seed of the fit
    expected: PartialFitClasses | None = None  # all classes

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        start: Start,
        samples: Samples,
        expected: PartialFitClasses | None = None,
    ) -> Growth | None:
        """Return the growth of a model; None if it cannot grow, or is not trained with its own objective."""
        chosen = configuration.conversion.weights_to_train is not None or not start.problem.has_default_loss
        source = start.problem.source
        if chosen or source is None or not configuration.warm_start or not is_fitted(configuration.source):
            return None
        part = fitted_part(source)
        rule = capability_of(part, GrowingEnsemble)
        if rule is None or not rule.grows(part) or part is not _last(source):
            return None
        return cls(configuration, source, rule, samples, start.state.seed, expected)

    def fitted(self, samples: Samples) -> Any:
        """Return a clone fitted on samples; None if the fit fails or a class is missing."""
        part, random_state = _last(self.source), np.random.RandomState(self.seed % 2**32)
        known = getattr(part, "classes_", None)
        if known is not None and self.rule.ignores_weightless:
            samples = _with_classes(samples, known)
        X, y, weights = self._after_steps(samples.X), samples.y, samples.sample_weight
        try:
            model = fit_clone(part, X, y, sample_weight=weights, random_state=random_state)
        except ValueError:  # too few samples for its parameters
            return None
        return model if known is None or np.array_equal(model.classes_, known) else None

    def new_scores(self, samples: Samples, others: Samples) -> np.ndarray | None:
        """Return scores of other samples by an ensemble fitted on samples; None if the fit fails."""
        new = self.fitted(samples)
        return None if new is None else self.rule.scores_of(new, self._after_steps(others.X))

    def completed(self, model: FittedModel, share: float) -> FittedModel:
        """Return a trained model with trees fitted on all samples, which get a share of the scores."""
        configuration = replace(self.configuration, source=self._joined(model.to_sklearn(), share))
        with quiet():  # the same warnings were shown before
            random_state = np.random.RandomState(self.seed % 2**32)
            start = new_start(configuration, self.samples, random_state, self.seed, None, self.expected)
        state = replace(
            model.state.back_to(start.weights), anchor=start.weights, start_kept=False, grown=True
        )
        grown = FittedModel(start.problem, start.features, state)
        grown.open(configuration.runtime)
        return grown

    def _joined(self, trained: Any, share: float) -> Any:
        """Return the trained source with trees fitted on all samples."""
        new = self.fitted(self.samples)
        part = new if share == 1 else self.rule.joined(_last(trained), new, share)
        if not isinstance(trained, Pipeline):
            return part
        pipeline = copy.copy(trained)
        pipeline.steps = [*trained.steps[:-1], (trained.steps[-1][0], part)]
        return pipeline

    def _after_steps(self, X: Any) -> Any:
        """Return X after the preprocessing steps."""
        steps = isinstance(self.source, Pipeline) and len(self.source.steps) > 1
        return self.source[:-1].transform(X) if steps else X


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


def _last(source: Any) -> Any:
    return source.steps[-1][1] if isinstance(source, Pipeline) else source
