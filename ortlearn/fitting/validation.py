"""Loss and score on validation samples during the training."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.checksums import array_text
from ..data.samples import Data
from ..data.source_features import SourceFeatures
from ..inference.fixed_inference import FixedInference
from ..inference.running import LiveInference
from ..preprocessing.columns import count_samples
from ..problem.configuration import Configuration
from ..problem.input_validation import InputFeatures
from ..problem.objective_weights import read_data
from ..problem.problem import Problem
from ..problem.samples import Samples, check_lengths
from ..targets.encoding import check_labels
from ..targets.label_errors import check_validation_classes
from ..training.graphs.sparse_products import stays_sparse
from ..training.settings import Measured
from ..training.state import TrainingState
from .fingerprint_texts import arrays_text
from .fitted_model import FittedModel
from .leaves.unseen_members import of_unseen_members, with_members
from .scoring import takes_weights
from .start import Start, labelled

__all__ = ["BaseValidation", "Validation", "evaluator"]

#: Function of an estimator, X, y and sample_weight.
Scorer = Callable[..., float]


class BaseValidation:
    """Loss and score of held-out samples, wherever they are."""

    n_samples: int
    #: Samples as inputs of the graph; None if they are on other machines.
    data: Any = None

    def texts(self) -> dict[str, str]:
        """Return the fingerprint of the samples."""
        raise NotImplementedError

    def loss(self, weights: Mapping[str, np.ndarray]) -> float:
        """Return the mean loss of the model with given weights."""
        raise NotImplementedError

    def losses(self, weights: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Return the loss of each sample; None if only the mean is known."""
        return None

    def score(self, weights: Mapping[str, np.ndarray]) -> float | None:
        """Return the score of the model with given weights, after their loss; None if it has none."""
        raise NotImplementedError

    def measure(self, weights: Mapping[str, np.ndarray]) -> Measured:
        """Return loss and score of the model with given weights."""
        return Measured(self.loss(weights), self.score(weights))


class Validation(BaseValidation):
    """Validation on samples in memory or of a source; ``data`` are the same as inputs of the graph."""

    def __init__(
        self,
        configuration: Configuration,
        problem: Problem,
        features: InputFeatures,
        samples: Samples,
        data: Data,
        as_estimator: Callable[[FittedModel], Any],
    ):
        self._configuration, self._runner = configuration, evaluator(configuration, problem, data)
        self.samples, self.data, self.n_samples = samples, data, data.X.shape[0]
        self._live = FittedModel(problem, features, TrainingState(), inference=self._runner)
        self._estimator, self._as_estimator, self._problem = as_estimator(self._live), as_estimator, problem
        self._score = _scorer(configuration.stopping.scoring, self._estimator, problem, samples)

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        start: Start,
        samples: Samples,
        as_estimator: Callable[[FittedModel], Any],
        members: np.ndarray | None = None,
    ) -> Validation:
        """Return the validation on samples, with weights of the members of an ensemble."""
        problem = start.problem
        if problem.needs_labels and samples.y is None:
            raise ValueError("y_val is missing: pass both X_val and y_val, or neither.")
        samples = labelled(problem, samples.with_checked_weights())[0]
        check_labels(samples.y, "y_val")
        check_validation_classes(samples.y, problem.targets.classes)
        check_lengths(samples.X, samples.y)
        data = read_data(problem, samples, start.features)
        data = (
            data if members is None else with_members(data, members, problem.trainable.replaced is not None)
        )
        return cls(configuration, problem, start.features, samples, data, as_estimator)

    def of_model(self, problem: Problem, features: InputFeatures) -> Validation:
        """Return the validation of another model on the same samples."""
        data = read_data(problem, self.samples, features)
        return Validation(self._configuration, problem, features, self.samples, data, self._as_estimator)

    def texts(self) -> dict[str, str]:
        """Return the fingerprint of the samples (of a source, of the first chunk)."""
        data, weights = self.data, self.samples.sample_weight
        if isinstance(data.X, SourceFeatures):
            data = Data(data.X.first(), data.y)
        return {
            **arrays_text(data, "_val"),
            "sample_weight_val": array_text([None if weights is None else np.asarray(weights)]),
        }

    def loss(self, weights: Mapping[str, np.ndarray]) -> float:
        """Return the mean loss of the model with given weights."""
        self._runner.weights = weights  # for the score, too
        return self._runner.mean_loss(self.data.X, self.data.y, self.data.sample_weight)

    def losses(self, weights: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Return the loss of each sample; None for a graph with its own loss, or with a loss per position."""
        if self._runner.problem.loss is None:
            return None
        self._runner.weights = weights
        losses = self._runner.losses(self.data.X, self.data.y)
        return losses.astype(np.float64) if losses.ndim == 1 else None

    def _written(self, weights: Mapping[str, np.ndarray]) -> Any:
        """Return the estimator with given weights, for scores of ``to_sklearn()``."""
        return self._as_estimator(replace(self._live, state=TrainingState(dict(weights))))

    def score(self, weights: Mapping[str, np.ndarray]) -> float | None:
        """Return the score of the model with given weights, after their loss; None if it has none."""
        if self._score is None:
            return None
        samples = self.samples
        estimator = self._written(weights) if self._problem.has_own_score else self._estimator
        options = {} if samples.sample_weight is None else {"sample_weight": samples.sample_weight}
        return float(self._score(estimator, samples.X, samples.y, **options))


def evaluator(
    configuration: Configuration, problem: Problem, data: Data, prepares: bool = True
) -> LiveInference:
    """Return the inference that evaluates weights on samples, by the members that have not seen them.

    If it ``prepares`` samples, it keeps the results of the frozen part of the graph, which may be large.
    """
    model, runtime, loss = problem.trainable.model, configuration.runtime, problem.loss
    reads_entries = data.members is None and stays_sparse(data.X)
    if reads_entries or isinstance(data.X, SourceFeatures) or loss is None or loss.in_python:
        return LiveInference(problem, model, runtime)
    task = of_unseen_members(problem, problem.task(False, evaluates=True), data)
    return FixedInference(problem, model, runtime, task, data, prepares and configuration.precompute)


def _scorer(scoring: Any, estimator: Any, problem: Problem, samples: Samples) -> Scorer | None:
    """Return the scorer for ``scoring``; None for ``"loss"`` if the estimator has no score."""
    if scoring == "loss":
        own_loss = problem.trainable.scores is None  # a graph with its own loss may have no predictions
        one_value = problem.targets.classes is None and count_samples(samples.X) < 2  # R2 is undefined
        weighted = samples.sample_weight is not None and problem.has_own_score
        unweighted = weighted and not takes_weights(problem.source)  # the score does not take the weights
        return None if own_loss or one_value or unweighted else type(estimator).score
    if scoring is None:
        return type(estimator).score
    from sklearn.metrics import check_scoring  # slow import

    scorer = check_scoring(estimator, scoring)
    return _explained(scorer if _takes_weights(scorer) else _without_weights(scorer), scoring)


def _takes_weights(scorer: Scorer) -> bool:
    kinds = {name: item.kind for name, item in inspect.signature(scorer).parameters.items()}
    return "sample_weight" in kinds or inspect.Parameter.VAR_KEYWORD in kinds.values()


def _without_weights(scorer: Scorer) -> Scorer:
    return lambda estimator, X, y, sample_weight=None: scorer(estimator, X, y)


def _explained(scorer: Scorer, name: Any) -> Scorer:
    """Return a scorer whose errors name ``scoring``."""

    def score(estimator: Any, X: Any, y: Any, **weights: Any) -> float:
        try:
            return scorer(estimator, X, y, **weights)
        except ValueError as error:
            raise ValueError(f"scoring={name!r} failed on the validation samples: {error}") from error

    return score
