"""Objectives of fitted estimators, as a loss and a penalty."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ..penalties import BasePenalty, ElasticPenalty, L1Penalty, L2Penalty, NoPenalty
from .base import Objective
from .registry import definition_or_default, fitted_part, parts_of


def objective_of(estimator: Any, total_weight: float) -> Objective | None:
    """Return the objective that a fitted estimator minimises, from its hyper-parameters.

    The objective of a pipeline is that of its last step, of a search that of its best estimator, and of an
    ensemble that of its members if they agree. The objective of scikit-learn is divided by the sum of the
    sample weights and by the factor of its loss.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    total_weight : float
        Sum of the sample weights, including class weights; the number of samples if they are not weighted.
        Penalties such as ``alpha`` of ``Ridge`` and ``C`` of ``LogisticRegression`` depend on it.

    Returns
    -------
    Objective or None
        None if no loss and penalty express the objective, or if it is not a sum over samples: kernel
        machines with the norm of their function space, neighbours, naive Bayes.

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

    True for networks, trees and kernel machines, which are trained with early stopping on held-out samples;
    False for penalised linear models.
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
    """Return the value of a hyper-parameter for all outputs; None if it differs between outputs."""
    found = np.unique(np.asarray(values, dtype=np.float64))
    return float(found[0]) if len(found) == 1 else None


def common_objective(members: Iterable[Any], total_weight: float) -> Objective | None:
    """Return the objective of the members of an ensemble; None if objectives are missing or differ.

    A loss of logarithms of predictions does not apply to members that transform the labels.
    """
    members = list(members)
    found = [objective_of(member, total_weight) for member in members]
    if any(o is not None and o.loss.link == "log" for o in found) and any(map(_transforms_labels, members)):
        return None
    parts = [objective and (objective.loss, objective.penalty) for objective in found]
    keys = {part and repr([(type(p), sorted(p.get_params().items())) for p in part]) for part in parts}
    return found[0] if len(keys) == 1 else None


def _transforms_labels(estimator: Any) -> bool:
    """Return whether an estimator, or one inside it, is fitted on transformed labels."""
    return any(hasattr(part, "transformer_") for part in parts_of(estimator))


def with_scaled_penalty(objective: Objective, factor: float) -> Objective | None:
    """Return an objective with its penalty multiplied; None if the penalty has no strength to scale."""
    penalty = objective.penalty
    if factor == 1 or isinstance(penalty, NoPenalty):
        return objective
    strengths = {"l1", "l2", "strength"} & set(penalty.get_params())
    scaled = {name: getattr(penalty, name) * factor for name in strengths}
    return replace(objective, penalty=clone(penalty).set_params(**scaled)) if strengths else None
