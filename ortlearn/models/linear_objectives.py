"""Objectives of linear models."""

# Formulas are those of the user guide of scikit-learn, "Linear Models", "Support Vector Machines" and
# "Stochastic Gradient Descent", divided by the sum W of sample weights and by the factor of the loss.

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import losses
from ..penalties import BasePenalty, GroupLassoPenalty, L2Penalty, NoPenalty, PerWeightPenalty
from .base import Objective
from .linear import LinearClassifierDefinition, LinearRegressorDefinition
from .objectives import elastic, single_value

#: One epoch at a tiny rate, which does not diverge on unscaled data.
ONE_EPOCH = {"max_iter": 1, "tol": None, "early_stopping": False, "learning_rate": "constant", "eta0": 1e-12}
#: Regression losses by name.
REGRESSION: dict[str, Callable[[Any], losses.BaseLoss]] = {
    "squared_error": lambda model: losses.SquaredErrorLoss(),
    "huber": lambda model: losses.HuberLoss(float(model.epsilon)),
    "epsilon_insensitive": lambda model: losses.EpsilonInsensitiveLoss(float(model.epsilon)),
    "squared_epsilon_insensitive": lambda model: losses.SquaredEpsilonInsensitiveLoss(float(model.epsilon)),
}
#: Classification losses by name.
CLASSIFICATION: dict[str, type[losses.BaseLoss]] = {
    "hinge": losses.HingeLoss,
    "log_loss": losses.LogLoss,
    "modified_huber": losses.ModifiedHuberLoss,
    "perceptron": losses.PerceptronLoss,
    "squared_hinge": losses.SquaredHingeLoss,
}


class LeastSquaresDefinition(LinearRegressorDefinition):
    """LinearRegression: ``sum(w * (f - y)^2)``."""

    loss = losses.SquaredErrorLoss


def _ridge(model: Any, total_weight: float, loss: losses.BaseLoss) -> Objective | None:
    """Return the objective with ``l2 = alpha / (2 W)``; None if alpha differs between outputs."""
    alpha = single_value(getattr(model, "alpha_", getattr(model, "alpha", None)))
    return None if alpha is None else Objective(loss, elastic(l2=alpha / (2 * total_weight)))


class RidgeDefinition(LinearRegressorDefinition):
    """Ridge and RidgeCV: ``sum(w * (f - y)^2) + alpha * |coef|^2``."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return _ridge(model, total_weight, losses.SquaredErrorLoss())


class RidgeClassifierDefinition(LinearClassifierDefinition):
    """RidgeClassifier and RidgeClassifierCV: Ridge on labels -1 and 1, one column for each class."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return _ridge(model, total_weight, losses.SignedLabelLoss(losses.SquaredErrorLoss()))


class BayesianRidgeDefinition(LinearRegressorDefinition):
    """BayesianRidge: ``alpha_ / 2 * sum(w * (f - y)^2) + lambda_ / 2 * |coef|^2`` with fitted factors."""

    shape_parameters = None

    def objective(self, model: Any, total_weight: float) -> Objective:
        l2 = model.lambda_ / (2 * model.alpha_ * total_weight)
        return Objective(losses.SquaredErrorLoss(), elastic(l2=l2))


def _factors(model: Any) -> tuple[float, float]:
    """Return the factors of absolute and of squared coefficients."""
    alpha = float(getattr(model, "alpha_", getattr(model, "alpha", 0.0)))
    ratio = float(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0)))
    return alpha * ratio, alpha * (1 - ratio) / 2


class ElasticNetDefinition(LinearRegressorDefinition):
    """Lasso, ElasticNet, LassoLars, and their variants with alpha by cross-validation or a criterion."""

    # sum(w * (f - y)^2) / (2 W) + alpha * ratio * |coef|_1 + alpha * (1 - ratio) / 2 * |coef|^2

    def objective(self, model: Any, total_weight: float) -> Objective:
        return Objective(losses.SquaredErrorLoss(), elastic(*_factors(model)))


class MultiTaskDefinition(LinearRegressorDefinition):
    """MultiTaskLasso and MultiTaskElasticNet, also with alpha by cross-validation."""

    # sum((f - y)^2) / (2 n) + alpha * ratio * sum_j |coef_j| + alpha * (1 - ratio) / 2 * |coef|^2, coef_j the
    # coefficients of feature j for all outputs

    def objective(self, model: Any, total_weight: float) -> Objective:
        l1, l2 = _factors(model)
        groups = GroupLassoPenalty(l1 / math.sqrt(len(np.atleast_2d(model.coef_))))
        both = PerWeightPenalty({"*coef_": groups, "*": L2Penalty(l2, weights="*coef_")})
        return Objective(losses.SquaredErrorLoss(), both if l2 else groups)


class HuberRegressorDefinition(LinearRegressorDefinition):
    """HuberRegressor: ``sum(w * (s + s * H((f - y) / s))) + alpha * |coef|^2``, s the fitted ``scale_``."""

    shape_parameters = None

    def objective(self, model: Any, total_weight: float) -> Objective:
        # s * H(r / s), H(z) = z^2 up to epsilon and 2 * epsilon * |z| - epsilon^2 beyond, is Huber's loss of
        # r with delta = epsilon * s, times 2 / s
        scale = float(model.scale_)
        loss = losses.HuberLoss(delta=float(model.epsilon) * scale)
        return Objective(loss, elastic(l2=model.alpha * scale / (2 * total_weight)))


class QuantileRegressorDefinition(LinearRegressorDefinition):
    """QuantileRegressor: ``sum(w * pinball(f, y)) / W + alpha * |coef|_1``."""

    def objective(self, model: Any, total_weight: float) -> Objective:
        return Objective(losses.QuantileLoss(float(model.quantile)), elastic(l1=model.alpha))


def _with_intercept(model: Any, l1: float, l2: float) -> BasePenalty:
    """Return the penalty of liblinear, which penalises ``intercept_ / intercept_scaling`` too."""
    scale = float(model.intercept_scaling)
    if scale == 1 or not model.fit_intercept:
        return elastic(l1, l2, intercept=True)
    return PerWeightPenalty({"*coef_": elastic(l1, l2), "*intercept_": elastic(l1 / scale, l2 / scale**2)})


class LogisticRegressionDefinition(LinearClassifierDefinition):
    """LogisticRegression and LogisticRegressionCV, without an objective if C differs between classes."""

    # C * sum(w * l) + ratio * |coef|_1 + (1 - ratio) / 2 * |coef|^2, divided by C W
    shape_parameters = {"max_iter": 1}

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        strength, ratio = single_value(getattr(model, "C_", getattr(model, "C", None))), _l1_ratio(model)
        if strength is None or ratio is None:
            return None
        if getattr(model, "multi_class", "") == "multinomial" and len(model.coef_) == 1:
            return None  # the softmax of -f and f
        share = 0.0 if model.penalty is None or np.isinf(strength) else 1 / (strength * total_weight)
        l1, l2 = ratio * share, (1 - ratio) * share / 2
        penalised = model.solver == "liblinear"
        return Objective(losses.LogLoss(), _with_intercept(model, l1, l2) if penalised else elastic(l1, l2))


def _l1_ratio(model: Any) -> float | None:
    """Return the L1 ratio by ``penalty``, as before scikit-learn 1.8, or ``l1_ratio``; None if several."""
    if model.penalty in ("l1", "l2"):
        return float(model.penalty == "l1")
    ratios = np.ravel(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 0.0)))
    return single_value([0.0 if ratio is None else ratio for ratio in ratios])


class LinearSVCDefinition(LinearClassifierDefinition):
    """LinearSVC: ``C * sum(w * l) + R``, R the norm ``|coef|_1`` or ``|coef|^2 / 2``, divided by ``C W``."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        if model.multi_class == "crammer_singer":
            return None  # a loss of all classes together
        share, is_l1 = 1 / (model.C * total_weight), model.penalty == "l1"
        penalty = _with_intercept(model, share * is_l1, share * (not is_l1) / 2)
        return Objective(CLASSIFICATION[model.loss](), penalty)


class LinearSVRDefinition(LinearRegressorDefinition):
    """LinearSVR: ``C * sum(w * l) + |coef|^2 / 2``, divided by ``C W``."""

    def objective(self, model: Any, total_weight: float) -> Objective:
        penalty = _with_intercept(model, 0.0, 1 / (2 * model.C * total_weight))
        return Objective(REGRESSION[model.loss](model), penalty)


def _stochastic(model: Any) -> BasePenalty:
    """Return the penalty of ``sum(w * l) / n + alpha R``, R the norm, for weights of mean one."""
    if model.penalty is None:
        return NoPenalty()
    ratio = {"l1": 1.0, "l2": 0.0, "elasticnet": float(model.l1_ratio or 0.0)}[model.penalty]
    return elastic(model.alpha * ratio, model.alpha * (1 - ratio) / 2)


class StochasticRegressorDefinition(LinearRegressorDefinition):
    """SGDRegressor."""

    shape_parameters: Mapping[str, Any] | None = ONE_EPOCH

    def objective(self, model: Any, total_weight: float) -> Objective:
        return Objective(REGRESSION[model.loss](model), _stochastic(model))


class StochasticClassifierDefinition(LinearClassifierDefinition):
    """SGDClassifier and Perceptron, one-vs-rest for several classes."""

    shape_parameters: Mapping[str, Any] | None = ONE_EPOCH

    def objective(self, model: Any, total_weight: float) -> Objective:
        if model.loss in REGRESSION:  # on labels -1 and 1
            return Objective(losses.SignedLabelLoss(REGRESSION[model.loss](model)), _stochastic(model))
        return Objective(CLASSIFICATION[model.loss](), _stochastic(model))


class PassiveAggressiveRegressorDefinition(StochasticRegressorDefinition):
    """PassiveAggressiveRegressor, without a penalty (Crammer et al., JMLR 7, 2006)."""

    shape_parameters = {}


class PassiveAggressiveClassifierDefinition(StochasticClassifierDefinition):
    """PassiveAggressiveClassifier: the hinge loss or its square, without a penalty."""

    shape_parameters = {}
