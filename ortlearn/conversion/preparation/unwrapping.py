"""Wrappers around a model that ONNX has no part in: searches, decision thresholds, transformed targets."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, VotingClassifier, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelEncoder

from ...exceptions import ConversionError
from ...models import all_covered

__all__ = ["Threshold", "Unwrapped", "unwrap"]


@dataclass(frozen=True)
class Threshold:
    """A decision threshold on two classes.

    Attributes
    ----------
    value : float
        From this score on, a row has the positive class.
    positive : int
        Number of that class, 0 or 1.
    of_probability : bool
        Whether the score is its probability, or else the decision function.
    """

    value: float
    positive: int
    of_probability: bool


@dataclass(frozen=True)
class Unwrapped:
    """An estimator without its wrappers, and what they add.

    Attributes
    ----------
    estimator : estimator
        What is converted.
    threshold : Threshold or None
        Decision threshold of a classifier.
    target_transformers : tuple of transformer
        What the targets of a regressor go through before it sees them, the outermost first.
    """

    estimator: BaseEstimator
    threshold: Threshold | None = None
    target_transformers: tuple[Any, ...] = ()


def unwrap(estimator: BaseEstimator) -> Unwrapped:
    """Return a fitted estimator without its wrappers, those around the last step of a pipeline too.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator or pipeline.

    Returns
    -------
    Unwrapped
        The estimator itself where there are none.

    Raises
    ------
    ConversionError
        If a search has no best estimator, fitted on all data.
    """
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = unwrap(last)
        if inner.estimator is last:
            return Unwrapped(estimator)
        steps = [*estimator.steps[:-1], (name, inner.estimator)]
        return replace(inner, estimator=Pipeline(steps))
    for kind, function in WRAPPERS.items():
        if isinstance(estimator, kind):
            return function(estimator)
    return Unwrapped(estimator)


def _search(estimator: Any) -> Unwrapped:
    if not hasattr(estimator, "best_estimator_"):
        raise ConversionError(
            f"{type(estimator).__name__} has no best_estimator_: set refit=True, or pass the estimator you "
            "chose."
        )
    return unwrap(estimator.best_estimator_)


def _thresholded(estimator: Any) -> Unwrapped:
    inner = getattr(estimator, "estimator_", None) or estimator.estimator
    method = estimator.response_method
    of_probability = hasattr(inner, "predict_proba") if method == "auto" else method == "predict_proba"
    value = getattr(estimator, "best_threshold_", None)
    if value is None:
        value = estimator.threshold
    if isinstance(value, str):  # "auto"
        value = 0.5 if of_probability else 0.0
    # best_threshold_ is that of the positive class; classes_[1] is it unless told otherwise.
    label = getattr(estimator, "pos_label", None)
    positive = 1 if label is None else int(np.flatnonzero(np.asarray(inner.classes_) == label)[0])
    return replace(unwrap(inner), threshold=Threshold(float(value), positive, of_probability))


def _with_target(estimator: Any) -> Unwrapped:
    inner = unwrap(estimator.regressor_)
    return replace(inner, target_transformers=(estimator.transformer_, *inner.target_transformers))


def _voting(estimator: Any) -> Unwrapped:
    estimator = copy.copy(estimator)
    if estimator.weights is not None:
        estimator.weights = np.asarray(estimator.weights, dtype=np.float64)
    if isinstance(estimator, VotingClassifier):
        estimator.flatten_transform = False  # only transform knows the difference
    return Unwrapped(estimator)


def _bagging(estimator: BaggingClassifier) -> Unwrapped:
    """Return a vote in the place of members without probabilities, which skl2onnx adds up over rows."""
    if all_covered(estimator):
        return Unwrapped(estimator)
    members = estimator.estimators_
    whole = all(len(own) == estimator.n_features_in_ for own in estimator.estimators_features_)
    if hasattr(members[0], "predict_proba") or not whole or estimator.bootstrap_features:
        return Unwrapped(estimator)
    named = [(str(number), member) for number, member in enumerate(members)]
    vote = VotingClassifier(named, voting="hard", flatten_transform=False)
    vote.estimators_ = members
    vote.classes_ = estimator.classes_
    vote.le_ = LabelEncoder().fit(estimator.classes_)
    return Unwrapped(vote)


WRAPPERS: dict[type, Callable[[Any], Unwrapped]] = {
    BaseSearchCV: _search,
    FixedThresholdClassifier: _thresholded,
    TunedThresholdClassifierCV: _thresholded,
    TransformedTargetRegressor: _with_target,
    VotingClassifier: _voting,
    VotingRegressor: _voting,
    BaggingClassifier: _bagging,
    FrozenEstimator: lambda estimator: unwrap(estimator.estimator),
}
