"""Warm starts of boosted ensembles, which add trees fitted on the new samples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..comparison.adaptation import best_of, weights_of
from ..data.samples import Data
from ..inference.running import Inference
from ..models import fitted_part
from ..models.capabilities import GrowingEnsemble, capability_of
from ..preprocessing.columns import count_rows
from ..preprocessing.fitting import fit_clone, is_fitted
from ..problem.configuration import Configuration
from ..problem.problem import Problem
from ..problem.samples import Samples
from ..quiet import quiet
from ..targets.given_classes import PartialFitClasses
from .fitted_model import FittedModel
from .start import begin

__all__ = ["Growth", "grown_model"]

#: Candidates for the share of the scores that comes from new trees.
SHARES = (0.25, 0.5, 0.75, 1.0)
#: Number of cross-validation folds to choose the share.
FOLDS = 3


@dataclass
class Growth:
    """A boosted model to which trees fitted on new samples may be added.

    Attributes
    ----------
    source : estimator
        Fitted model, or a pipeline that ends with it.
    ensemble : GrowingEnsemble
        How two of them are averaged.
    samples : Samples
        New samples.
    seed : int
        Seed of the fit.
    """

    source: Any
    ensemble: GrowingEnsemble
    samples: Samples
    seed: int

    @classmethod
    def of(cls, configuration: Configuration, problem: Problem, samples: Samples, seed: int) -> Growth | None:
        """Return the growth of a model; None if it is not boosted, or not trained with its own objective."""
        chosen = configuration.conversion.weights_to_train is not None or configuration.loss is not None
        source = problem.source
        if chosen or source is None or not configuration.warm_start:
            return None
        if is_fitted(configuration.source):
            part = fitted_part(source)
            ensemble = capability_of(part, GrowingEnsemble)
            if ensemble is not None and ensemble.grows(part) and part is _last(source):
                return cls(source, ensemble, samples, seed)
        return None

    def share(
        self,
        parts: Iterable[tuple[Samples, Samples]],
        scored: Iterable[tuple[np.ndarray, Data]],
        losses: Callable[[np.ndarray, Data], np.ndarray],
    ) -> float:
        """Return the best share of the scores for new trees; zero if they do not improve the model."""
        found, weights = [], []
        for (train, left_out), (scores, data) in islice(zip(parts, scored, strict=True), FOLDS):
            model = self.fitted(train)
            if model is None:
                return 0.0
            new = self.ensemble.scores_of(model, self._after_steps(left_out.X)).astype(scores.dtype)
            mixed = [self.ensemble.mixed_scores(scores, new, share) for share in SHARES]
            found.append([losses(values, data) for values in (scores, *mixed)])
            weights.append(weights_of(data))
        evidence = self.ensemble.evidence
        best = best_of(np.concatenate(found, axis=1), np.concatenate(weights), SHARES, evidence)
        return 0.0 if best is None else SHARES[best]

    def fitted(self, samples: Samples) -> Any:
        """Return a clone fitted on samples; None if the fit fails or a class is missing."""
        part, random_state = _last(self.source), np.random.RandomState(self.seed % 2**32)
        known = getattr(part, "classes_", None)
        if known is not None and self.ensemble.ignores_weightless:
            samples = _with_classes(samples, known)
        X, y, weights = self._after_steps(samples.X), samples.y, samples.sample_weight
        try:
            model = fit_clone(part, X, y, sample_weight=weights, random_state=random_state)
        except ValueError:  # too few samples for its parameters
            return None
        return model if known is None or np.array_equal(model.classes_, known) else None

    def grown(self, trained: Any, share: float) -> Any:
        """Return the trained source with trees fitted on all samples."""
        new = self.fitted(self.samples)
        part = new if share == 1 else self.ensemble.joined(_last(trained), new, share)
        if not isinstance(trained, Pipeline):
            return part
        pipeline = copy.copy(trained)
        pipeline.steps = [*trained.steps[:-1], (trained.steps[-1][0], part)]
        return pipeline

    def _after_steps(self, X: Any) -> Any:
        """Return X after the preprocessing steps."""
        steps = isinstance(self.source, Pipeline) and len(self.source.steps) > 1
        return self.source[:-1].transform(X) if steps else X


def grown_model(
    configuration: Configuration,
    samples: Samples,
    expected: PartialFitClasses | None,
    model: FittedModel,
    share: float,
) -> FittedModel:
    """Return a trained model with additional trees fitted on samples, which get a share of the scores."""
    seed = model.state.seed
    growth = Growth.of(configuration, model.problem, samples, seed)
    assert growth is not None
    configuration = replace(configuration, source=growth.grown(model.to_sklearn(), share))
    with quiet():  # the same warnings were shown before
        start = begin(configuration, samples, np.random.RandomState(seed % 2**32), seed, None, expected)
    trained = start.problem.trainable.with_stable_weights(start.weights)
    state = replace(model.state, anchor=start.weights, start_kept=False, grown=True)
    inference = Inference(start.problem, trained, configuration.runtime)
    return FittedModel(start.problem, start.features, trained, state, inference=inference)


def _with_classes(samples: Samples, classes: np.ndarray) -> Samples:
    """Return samples with the first one again, of weight zero, for each class that they lack."""
    missing = np.setdiff1d(classes, samples.y)
    if not len(missing):
        return samples
    n_samples = count_rows(samples.X)
    taken = samples.take(np.append(np.arange(n_samples), np.zeros(len(missing), dtype=int)))
    weights = np.ones(len(taken.y)) if taken.sample_weight is None else np.array(taken.sample_weight)
    weights[n_samples:] = 0.0
    return Samples(taken.X, np.append(np.ravel(samples.y), missing), weights)


def _last(source: Any) -> Any:
    return source.steps[-1][1] if isinstance(source, Pipeline) else source
