"""Boosted ensembles that grow: trees fitted on new samples join those of a model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .. import conversion
from ..models import ModelDefinition, find_definition, fitted_part
from ..quiet import quiet
from ..training import Data
from .adaptation import best_of, weights_of
from .configuration import Configuration
from .fitted_model import FittedModel
from .inference import Inference
from .partial_fit_classes import PartialFitClasses
from .problem import Problem
from .samples import Samples
from .starting import begin

__all__ = ["Growth", "grown_model"]

#: Shares of the scores that are tried for the trees fitted on new samples.
SHARES = (0.25, 0.5, 0.75, 1.0)
#: Parts of the samples that are left out of a fit, one after the other, to choose the share.
FOLDS = 3


@dataclass
class Growth:
    """What a boosted model becomes with trees fitted on new samples: its splits are not trained otherwise.

    Attributes
    ----------
    source : estimator
        Fitted model, or a pipeline that ends with it.
    definition : ModelDefinition
        Its definition.
    samples : Samples
        New samples.
    seed : int
        Where seeds for a parameter ``random_state=None`` come from.
    """

    source: Any
    definition: ModelDefinition
    samples: Samples
    seed: int

    @classmethod
    def of(cls, configuration: Configuration, problem: Problem, samples: Samples, seed: int) -> Growth | None:
        """Return how a model grows; None for models that do not, or where it was not asked for all of it."""
        chosen = configuration.conversion.weights_to_train is not None or configuration.loss is not None
        source = problem.source
        if chosen or source is None or not configuration.warm_start:
            return None
        if conversion.is_fitted(configuration.source):
            part = fitted_part(source)
            definition = find_definition(part)
            if definition is not None and definition.grows(part) and part is _last(source):
                return cls(source, definition, samples, seed)
        return None

    def share(
        self,
        parts: Iterable[tuple[Samples, Samples]],
        scored: Iterable[tuple[np.ndarray, Data]],
        losses: Callable[[np.ndarray, Data], np.ndarray],
    ) -> float:
        """Return the share of the scores that new trees are to have; zero where none are needed."""
        found, weights = [], []
        for (train, left_out), (scores, data) in islice(zip(parts, scored, strict=True), FOLDS):
            model = self.fitted(train)
            if model is None:
                return 0.0
            new = self.definition.scores_of(model, self._behind_steps(left_out.X)).astype(scores.dtype)
            found.append([losses(scores + share * (new - scores), data) for share in (0.0, *SHARES)])
            weights.append(weights_of(data))
        best = best_of(np.concatenate(found, axis=1), np.concatenate(weights), SHARES)
        return 0.0 if best is None else SHARES[best]

    def fitted(self, samples: Samples) -> Any:
        """Return a new fit on samples; None where scikit-learn cannot fit them, or a class is missing."""
        part, random_state = _last(self.source), np.random.RandomState(self.seed % 2**32)
        X, y, weights = self._behind_steps(samples.X), samples.y, samples.sample_weight
        try:
            found = conversion.fit_clone(part, X, y, sample_weight=weights, random_state=random_state)
        except ValueError:  # too few samples for its parameters: there is no such candidate
            return None
        known = getattr(part, "classes_", None)
        return found if known is None or np.array_equal(found.classes_, known) else None

    def grown(self, trained: Any, share: float) -> Any:
        """Return a trained copy of the source with the trees of a fit on all samples."""
        new = self.fitted(self.samples)
        part = new if share == 1 else self.definition.joined(_last(trained), new, share)
        if not isinstance(trained, Pipeline):
            return part
        found = copy.copy(trained)
        found.steps = [*trained.steps[:-1], (trained.steps[-1][0], part)]
        return found

    def _behind_steps(self, X: Any) -> Any:
        """Return samples as the model itself is given them."""
        steps = isinstance(self.source, Pipeline) and len(self.source.steps) > 1
        return self.source[:-1].transform(X) if steps else X


def grown_model(
    configuration: Configuration,
    samples: Samples,
    expected: PartialFitClasses | None,
    model: FittedModel,
    share: float,
) -> FittedModel:
    """Return a trained model with the trees of a fit on samples, which have a share of its scores."""
    seed = model.state.seed
    growth = Growth.of(configuration, model.problem, samples, seed)
    assert growth is not None
    configuration = replace(configuration, source=growth.grown(model.to_sklearn(), share))
    with quiet():  # it was said of the model before it had grown
        start = begin(configuration, samples, np.random.RandomState(seed % 2**32), seed, None, expected)
    trained = start.problem.trainable.with_stable_weights(start.weights)
    state = replace(model.state, anchor=start.weights, start_kept=False, grown=True)
    inference = Inference(start.problem, trained, configuration.runtime)
    return FittedModel(start.problem, start.features, trained, state, inference=inference)


def _last(source: Any) -> Any:
    return source.steps[-1][1] if isinstance(source, Pipeline) else source
