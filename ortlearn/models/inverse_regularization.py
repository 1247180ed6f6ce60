"""Linear estimators whose C is the inverse of the regularization strength: what they minimise.

``C * sum(w * l) + R``, with ``R = |coef|_1``, ``|coef|^2 / 2``, or ``ratio * |coef|_1 + (1 - ratio) / 2 *
|coef|^2`` (User guide of scikit-learn, "Logistic regression" and "Support Vector Machines"). Divided by ``C *
W``, W the sum of the weights: ``l1 = ratio / (C W)`` and ``l2 = (1 - ratio) / (2 C W)``.

liblinear has the intercept as the coefficient of a feature that is ``intercept_scaling``, and penalises it
like the others: an intercept b costs what a coefficient ``b / intercept_scaling`` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import (
    EpsilonInsensitiveLoss,
    HingeLoss,
    LogLoss,
    SquaredEpsilonInsensitiveLoss,
    SquaredHingeLoss,
)
from ..penalties import BasePenalty, PerWeightPenalty
from .linear import LinearClassifierDefinition, LinearRegressorDefinition
from .objectives import Objective, elastic, single_value


def _with_intercept(model: Any, l1: float, l2: float) -> BasePenalty:
    """Return the penalty of liblinear, which the intercept has too."""
    scale = float(model.intercept_scaling)
    if scale == 1 or not model.fit_intercept:
        return elastic(l1, l2, intercept=True)
    return PerWeightPenalty({"*coef_": elastic(l1, l2), "*intercept_": elastic(l1 / scale, l2 / scale**2)})


class LogisticRegressionDefinition(LinearClassifierDefinition):
    """LogisticRegression and LogisticRegressionCV; no objective where C differs between classes."""

    shape_parameters = {"max_iter": 1}

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        strength, ratio = single_value(getattr(model, "C_", getattr(model, "C", None))), _l1_ratio(model)
        if strength is None or ratio is None:
            return None
        if getattr(model, "multi_class", "") == "multinomial" and len(model.coef_) == 1:
            return None  # of two classes, the softmax of -f and f
        share = 0.0 if model.penalty is None or np.isinf(strength) else 1 / (strength * total_weight)
        l1, l2 = ratio * share, (1 - ratio) * share / 2
        penalised = model.solver == "liblinear"
        return Objective(LogLoss(), _with_intercept(model, l1, l2) if penalised else elastic(l1, l2))


def _l1_ratio(model: Any) -> float | None:
    """Return the share of the absolute values: of ``penalty`` before scikit-learn 1.8, ``l1_ratio`` since."""
    if model.penalty in ("l1", "l2"):
        return float(model.penalty == "l1")
    ratios = np.ravel(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 0.0)))
    return single_value([0.0 if ratio is None else ratio for ratio in ratios])


class LinearSVCDefinition(LinearClassifierDefinition):
    """LinearSVC."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        if model.multi_class == "crammer_singer":
            return None  # a loss of all classes at once
        share, is_l1 = 1 / (model.C * total_weight), model.penalty == "l1"
        penalty = _with_intercept(model, share * is_l1, share * (not is_l1) / 2)
        return Objective(HingeLoss() if model.loss == "hinge" else SquaredHingeLoss(), penalty)


class LinearSVRDefinition(LinearRegressorDefinition):
    """LinearSVR."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        squared = model.loss == "squared_epsilon_insensitive"
        loss = (SquaredEpsilonInsensitiveLoss if squared else EpsilonInsensitiveLoss)(float(model.epsilon))
        return Objective(loss, _with_intercept(model, 0.0, 1 / (2 * model.C * total_weight)))
