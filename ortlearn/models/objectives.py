"""The objective that a fitted estimator minimises, as loss and penalty."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from ..penalties import BasePenalty, ElasticPenalty, L1Penalty, L2Penalty, NoPenalty
from .base import Objective
from .registry import definition_or_default, fitted_part


def objective_of(estimator: Any, total_weight: float) -> Objective | None:
    """Return the objective that a fitted estimator minimises.

    For a pipeline, it is that of the last step, for a search that of the best estimator, and for an ensemble
    that of its members if they agree. Losses of ortlearn are means over samples: the objective of
    scikit-learn is divided by the sum of the weights and by the factor of its loss.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    total_weight : float
        Sum of the sample weights, including class weights; the number of samples without weights.
        Penalties such as ``alpha`` of ``Ridge`` and ``C`` of ``LogisticRegression`` depend on it.

    Returns
    -------
    Objective or None
        None if the class minimises no sum over samples, as nearest neighbours and naive Bayes, or one that no
        loss and penalty express, as kernel machines with a norm of functions.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from ortlearn.models import objective_of
    >>> model = make_pipeline(StandardScaler(), Ridge(alpha=2.0)).fit([[0.0], [1.0]], [1.0, 3.0])
    >>> objective_of(model, total_weight=2)
    Objective(loss=SquaredErrorLoss(), penalty=L2Penalty())
    >>> objective_of(model, total_weight=100).penalty
    L2Penalty(l2=0.01)
    """
    part = fitted_part(estimator)
    return definition_or_default(part).objective(part, float(total_weight))


def is_flexible(estimator: Any) -> bool:
    """Return whether training a fitted estimator may overfit few samples.

    Networks, trees and kernel machines may; they are trained with early stopping on held-out samples, unlike
    penalised linear models.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from ortlearn.models import is_flexible
    >>> X, y = [[0.0], [1.0]], [1.0, 3.0]
    >>> is_flexible(Ridge().fit(X, y)), is_flexible(DecisionTreeRegressor().fit(X, y))
    (False, True)
    """
    part = fitted_part(estimator)
    definition = definition_or_default(part)
    if definition.flexible is None:
        return any(map(is_flexible, definition.children(part)))
    return definition.flexible


def elastic(l1: float = 0.0, l2: float = 0.0, intercept: bool = False) -> BasePenalty:
    """Return the penalty ``l1 * |w| + l2 * w ** 2`` under its simplest name."""
    if l1 and l2:
        return ElasticPenalty(l1=float(l1), l2=float(l2), intercept=intercept)
    if l1:
        return L1Penalty(l1=float(l1), intercept=intercept)
    return L2Penalty(l2=float(l2), intercept=intercept) if l2 else NoPenalty()


def single_value(values: Any) -> float | None:
    """Return a hyper-parameter that may have a value for each output; None if these differ."""
    found = np.unique(np.asarray(values, dtype=np.float64))
    return float(found[0]) if len(found) == 1 else None


def common_objective(members: Iterable[Any], total_weight: float) -> Objective | None:
    """Return the objective of all members of an ensemble, or None if they are missing or differ."""
    found = [objective_of(member, total_weight) for member in members]
    parts = [objective and (objective.loss, objective.penalty) for objective in found]
    keys = {part and repr([(type(p), sorted(p.get_params().items())) for p in part]) for part in parts}
    return found[0] if len(keys) == 1 else None


def with_penalty_times(objective: Objective, factor: float) -> Objective | None:
    """Return an objective with its penalty multiplied, or None if the penalty has no factor."""
    penalty = objective.penalty
    if factor == 1 or isinstance(penalty, NoPenalty):
        return objective
    strengths = {"l1", "l2", "strength"} & set(penalty.get_params())
    scaled = {name: getattr(penalty, name) * factor for name in strengths}
    return Objective(objective.loss, clone(penalty).set_params(**scaled)) if strengths else None
