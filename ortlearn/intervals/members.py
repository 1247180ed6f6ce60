"""Members: trained or given models whose outputs intervals are computed from."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .. import conversion
from ..estimators import OrtGradientOptimizer
from ..estimators.base import BaseOrtGradientEstimator
from ..fitting.fitted_model import FittedModel
from ..fitting.start import new_start
from ..problem.samples import Samples

__all__ = ["Member", "as_member", "is_given", "new_optimizer"]


@dataclass(frozen=True)
class Member:
    """A fitted estimator; ``reads`` is "X", "prediction" (of the first member) or "both", as columns."""

    estimator: BaseOrtGradientEstimator
    reads: str = "X"

    def features(self, X: Any, prediction: np.ndarray | None) -> Any:
        """Return what the estimator reads."""
        if self.reads == "X":
            return X
        column = np.asarray(prediction).reshape(-1, 1)
        return column if self.reads == "prediction" else np.hstack([column, np.asarray(X, column.dtype)])


def is_given(estimator: Any) -> bool:
    """Return whether a model is fitted or an ONNX file, so that its predictions must not change."""
    if isinstance(estimator, BaseOrtGradientEstimator):
        return estimator.__sklearn_is_fitted__()
    return conversion.is_onnx_source(estimator) or conversion.is_fitted(estimator)


def new_optimizer(estimator: Any, seed: int, **changed: Any) -> BaseOrtGradientEstimator:
    """Return an unfitted optimizer for an estimator or a copy of an optimizer, with changed parameters."""
    if not isinstance(estimator, BaseOrtGradientEstimator):
        return OrtGradientOptimizer(clone(estimator), random_state=seed, **changed)
    if estimator.random_state is None:
        changed["random_state"] = seed
    return clone(estimator).set_params(**changed)


def as_member(estimator: Any, X: Any, y: Any) -> Member:
    """Return a given model as a member, without training it."""
    if isinstance(estimator, BaseOrtGradientEstimator):
        return Member(copy.deepcopy(estimator))
    optimizer = OrtGradientOptimizer(estimator, warm_start=True, random_state=0)
    configuration = optimizer._configuration()
    start = new_start(configuration, Samples(X, y), check_random_state(0), 0)
    trained = start.problem.trainable.with_stable_weights(start.weights)
    state = replace(start.state, start_kept=True)
    optimizer._fitted = FittedModel(start.problem, start.features, trained, state)
    return Member(optimizer)
