"""Linear regression: what its estimators minimise.

Formulas are those of the user guide of scikit-learn, "Linear Models", divided by the sum W of the weights of
the samples and by the factor of their loss.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..losses import BaseLoss, HuberLoss, QuantileLoss, SignedLabelLoss, SquaredErrorLoss
from ..penalties import GroupLassoPenalty, L2Penalty, PerWeightPenalty
from .linear import LinearClassifierDefinition, LinearRegressorDefinition
from .objectives import Objective, elastic, single_value


class LeastSquaresDefinition(LinearRegressorDefinition):
    """LinearRegression: ``sum(w * (f - y)^2)``."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return Objective(SquaredErrorLoss())


def _ridge(model: Any, total_weight: float, loss: BaseLoss) -> Objective | None:
    """Return the objective with ``l2 = alpha / (2 W)``; None with one alpha for each output."""
    alpha = single_value(getattr(model, "alpha_", getattr(model, "alpha", None)))
    return None if alpha is None else Objective(loss, elastic(l2=alpha / (2 * total_weight)))


class RidgeDefinition(LinearRegressorDefinition):
    """Ridge and RidgeCV: ``sum(w * (f - y)^2) + alpha * |coef|^2``."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return _ridge(model, total_weight, SquaredErrorLoss())


class RidgeClassifierDefinition(LinearClassifierDefinition):
    """RidgeClassifier and RidgeClassifierCV: Ridge on labels -1 and 1, one column for each class."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return _ridge(model, total_weight, SignedLabelLoss(SquaredErrorLoss()))


class BayesianRidgeDefinition(LinearRegressorDefinition):
    """BayesianRidge: the mode of ``alpha_ / 2 * sum(w * (f - y)^2) + lambda_ / 2 * |coef|^2``.

    Both precisions are those that were fitted.
    """

    shape_parameters = None

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return Objective(SquaredErrorLoss(), elastic(l2=model.lambda_ / (2 * model.alpha_ * total_weight)))


def _factors(model: Any) -> tuple[float, float]:
    """Return the strength of a lasso or elastic net, and the share of the absolute values."""
    alpha = getattr(model, "alpha_", getattr(model, "alpha", 0.0))
    return float(alpha), float(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0)))


class ElasticNetDefinition(LinearRegressorDefinition):
    """Lasso, ElasticNet, LassoLars, and those that choose alpha by cross-validation or a criterion.

    ``sum(w * (f - y)^2) / (2 W) + alpha * ratio * |coef|_1 + alpha * (1 - ratio) / 2 * |coef|^2``
    """

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        alpha, ratio = _factors(model)
        return Objective(SquaredErrorLoss(), elastic(alpha * ratio, alpha * (1 - ratio) / 2))


class MultiTaskDefinition(LinearRegressorDefinition):
    """MultiTaskLasso and MultiTaskElasticNet, also with alpha by cross-validation.

    ``sum((f - y)^2) / (2 n) + alpha * ratio * sum_j |coef_j| + alpha * (1 - ratio) / 2 * |coef|^2``, with
    ``coef_j`` the coefficients of a feature for all outputs.
    """

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        alpha, ratio = _factors(model)
        groups = GroupLassoPenalty(alpha * ratio / math.sqrt(len(np.atleast_2d(model.coef_))))
        squares = alpha * (1 - ratio) / 2
        both = PerWeightPenalty({"*coef_": groups, "*": L2Penalty(squares, weights="*coef_")})
        return Objective(SquaredErrorLoss(), both if squares else groups)


class HuberRegressorDefinition(LinearRegressorDefinition):
    """HuberRegressor: ``sum(w * (s + s * H((f - y) / s))) + alpha * |coef|^2``, s the fitted ``scale_``.

    ``s * H(r / s)``, with ``H(z) = z^2`` up to epsilon and ``2 * epsilon * |z| - epsilon^2`` beyond, is
    Huber's loss of r with ``delta = epsilon * s``, times ``2 / s``.
    """

    shape_parameters = None

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        scale = float(model.scale_)
        loss = HuberLoss(delta=float(model.epsilon) * scale)
        return Objective(loss, elastic(l2=model.alpha * scale / (2 * total_weight)))


class QuantileRegressorDefinition(LinearRegressorDefinition):
    """QuantileRegressor: ``sum(w * pinball(f, y)) / W + alpha * |coef|_1``."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return Objective(QuantileLoss(float(model.quantile)), elastic(l1=model.alpha))
