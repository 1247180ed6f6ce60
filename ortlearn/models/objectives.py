"""The objective that an estimator was fitted with, in the terms of our losses and penalties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from ..losses import BaseLoss
from ..penalties import BasePenalty, ElasticPenalty, L1Penalty, L2Penalty, NoPenalty
from .registry import find_definition, fitted_part


@dataclass(frozen=True)
class Objective:
    """Loss and penalty of a fit: it minimises ``sum(w * l) / sum(w) + penalty``, w the sample weights.

    Attributes
    ----------
    loss : BaseLoss
        Loss l of a sample, on the score of the model's definition.
    penalty : BasePenalty
        Penalty of the parameters; none by default.
    approximate : str
        Why the penalty is not that of the fit; empty where it is.

    Examples
    --------
    >>> from ortlearn.losses import HuberLoss
    >>> from ortlearn.models import Objective
    >>> from ortlearn.penalties import L2Penalty
    >>> Objective(HuberLoss(), L2Penalty(0.1))
    Objective(loss=HuberLoss(), penalty=L2Penalty(l2=0.1))
    """

    loss: BaseLoss
    penalty: BasePenalty = field(default_factory=NoPenalty)
    approximate: str = field(default="", repr=False)

    def with_penalty_times(self, factor: float) -> Objective | None:
        """Return the objective with its penalty multiplied, None where that has no factor of its own."""
        if factor == 1 or isinstance(self.penalty, NoPenalty):
            return self
        strengths = {"l1", "l2", "strength"} & set(self.penalty.get_params())
        if not strengths:
            return None
        scaled = {name: getattr(self.penalty, name) * factor for name in strengths}
        return Objective(self.loss, clone(self.penalty).set_params(**scaled))


def _key(objective: Objective) -> tuple[str, ...]:
    plugins = (objective.loss, objective.penalty)
    return tuple(f"{type(plugin)} {sorted(plugin.get_params().items())!r}" for plugin in plugins)


def objective_of(estimator: Any, total_weight: float) -> Objective | None:
    """Return the objective that the hyper-parameters of a fitted estimator mean.

    A pipeline has that of its last step, a search that of its best estimator, an ensemble that of its
    members where these agree. Loss and penalty are those of ortlearn: whatever scikit-learn minimises is
    divided by the sum of the weights, and by the factor of its loss.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    total_weight : float
        Sum of the weights of the samples, those of their classes included; the number of samples without
        any. Penalties such as ``alpha`` of ``Ridge`` and ``C`` of ``LogisticRegression`` depend on it.

    Returns
    -------
    Objective or None
        None where the class minimises no sum over samples, or one that no loss and penalty express:
        kernel machines with the norm of their function space, neighbours, naive Bayes.

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
    definition = find_definition(part)
    return None if definition is None else definition.objective(part, float(total_weight))


def is_flexible(estimator: Any) -> bool:
    """Return whether training a fitted estimator may follow the noise of few samples.

    Linear models with a penalty of their own do not; networks, trees and kernel machines do: they are
    trained with an eye on samples that are left out.

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
    definition = find_definition(part)
    if definition is not None and definition.flexible is None:
        return any(map(is_flexible, definition.children(part)))
    return True if definition is None else bool(definition.flexible)


def elastic(l1: float = 0.0, l2: float = 0.0, intercept: bool = False) -> BasePenalty:
    """Return the penalty ``l1 * |w| + l2 * w ** 2`` under its simplest name."""
    if l1 and l2:
        return ElasticPenalty(l1=float(l1), l2=float(l2), intercept=intercept)
    if l1:
        return L1Penalty(l1=float(l1), intercept=intercept)
    return L2Penalty(l2=float(l2), intercept=intercept) if l2 else NoPenalty()


def single_value(values: Any) -> float | None:
    """Return the value of a hyper-parameter that may have one for each output, None where they differ."""
    found = np.unique(np.asarray(values, dtype=np.float64))
    return float(found[0]) if len(found) == 1 else None


def common_objective(members: Iterable[Any], total_weight: float) -> Objective | None:
    """Return the objective that all members of an ensemble have, None where one has none, or another one.

    ``total_weight`` is the sum of the weights of the samples of a member.
    """
    found = [objective_of(member, total_weight) for member in members]
    return found[0] if len({own and _key(own) for own in found}) == 1 else None
