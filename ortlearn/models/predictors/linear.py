"""Linear and generalised linear models."""

# Objectives follow the user guide of scikit-learn, "Linear Models", "Support Vector Machines" and
# "Stochastic Gradient Descent", divided by the sum W of the sample weights and by the factor of the loss.

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ... import losses
from ...penalties import BasePenalty, GroupLassoPenalty, L2Penalty, PerWeightPenalty
from ..base import ModelDefinition, Objective
from ..constraints.signs import NotNegative
from ..forms import Reshaped, Transposed
from ..fusion import FusedLinear
from ..objectives import elastic, single_value
from ..scores import Scores, binary_classes, class_scores, decisions, indicator, one_against_rest, regression
from ..writer import ModelWriter


def linear_scores(op: ModelWriter, model: Any, x: str) -> str:
    """Append ``x @ coef_.T + intercept_``, of shape (n, k); ``positive`` coefficients stay nonnegative."""
    constraint = NotNegative() if getattr(model, "positive", False) else None
    coef = op.parameter(model, "coef_", form=Transposed(), role="weight", constraint=constraint, drawn=True)
    scores, intercept = op.MatMul(x, coef), ""
    if getattr(model, "fit_intercept", True):
        intercept = op.parameter(model, "intercept_", form=Reshaped((-1,)), role="intercept", drawn=True)
        scores = op.Add(scores, intercept)
    op.fused[scores] = FusedLinear(*op.quotients.get(x, (x, "")), scores, coef, intercept)
    return scores


class LinearDefinition(ModelDefinition):
    """Models that predict ``x @ coef_.T + intercept_``, or classes from these scores."""

    flexible = False

    def parameters_for_shapes(self, estimator: Any) -> Mapping[str, Any] | None:
        selects_penalty = {"cv", "criterion"} & estimator.get_params(deep=False).keys()
        return None if selects_penalty else self.shape_parameters

    def covers(self, model: Any) -> bool:
        return isinstance(model.coef_, np.ndarray)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        score = linear_scores(op, model, x)
        if not hasattr(model, "classes_"):
            return regression(op, score, len(np.atleast_2d(model.coef_)))
        return _classes(op, model, score)

    def shape_predictions(self, model: Any, n_dimensions: int) -> None:
        if model.coef_.ndim == n_dimensions:
            return
        model.coef_ = model.coef_.reshape(1, -1) if n_dimensions == 2 else model.coef_.ravel()
        if np.size(model.intercept_) == 1 and getattr(model, "fit_intercept", True):
            intercept = np.asarray(model.intercept_)
            model.intercept_ = intercept.reshape(1) if n_dimensions == 2 else intercept.reshape(())[()]


class GeneralizedLinearDefinition(ModelDefinition):
    """Poisson, gamma and Tweedie regression: the inverse link of linear scores."""

    flexible = False

    def has_own_score(self, model: Any) -> bool:
        return True  # D2

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        # sum(w * d(y, f)) / (2 sum(w)) + alpha / 2 * |coef|^2, the deviance d twice our losses
        name = type(model._base_loss).__name__
        power = float(getattr(model, "power", 0.0))
        if name == "HalfTweedieLossIdentity" and power != 0:
            return None
        known = {"HalfPoissonLoss": losses.PoissonLoss(), "HalfGammaLoss": losses.GammaLoss()}
        known["HalfTweedieLossIdentity"] = losses.SquaredErrorLoss()
        loss = known.get(name) or losses.TweedieLoss(power=power)
        return Objective(loss, elastic(l2=model.alpha / 2))

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        identity = type(model._base_loss.link).__name__ == "IdentityLink"
        return regression(op, linear_scores(op, model, x), 1, "identity" if identity else "log")


def _classes(op: ModelWriter, model: Any, score: str) -> Scores:
    """Return the outputs of a classifier from its scores, with probabilities if the model has them."""
    classes = model.classes_
    if getattr(getattr(model, "_label_binarizer", None), "y_type_", "").startswith("multilabel"):
        return indicator(op, score, classes)
    if not hasattr(model, "predict_proba"):
        return decisions(op, score, classes)
    if getattr(model, "loss", "") == "modified_huber":
        return _modified_huber(op, score, classes)
    if len(np.atleast_2d(model.coef_)) == 1:
        return binary_classes(op, score, classes)
    one_vs_rest = hasattr(model, "loss") or getattr(model, "solver", "") == "liblinear"
    if one_vs_rest or getattr(model, "multi_class", "") == "ovr":
        return one_against_rest(op, score, classes)
    return class_scores(op, score, classes)


def _modified_huber(op: ModelWriter, score: str, classes: np.ndarray) -> Scores:
    """Append ``(clip(score, -1, 1) + 1) / 2``, divided by its sum (Zadrozny and Elkan, KDD 2002)."""
    shares = op.Div(op.Add(op.Max(op.Min(score, 1.0), -1.0), 1.0), 2.0)
    if len(classes) == 2:
        return decisions(op, score, classes, probabilities=op.binary_probabilities(shares))
    return decisions(op, score, classes, probabilities=op.normalized(shares, 1.0 / len(classes)))


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


def _loss_of(model: Any) -> losses.BaseLoss:
    """Return the loss of a model by its parameter ``loss``; classifiers also accept those of regression."""
    if model.loss in CLASSIFICATION:
        return CLASSIFICATION[model.loss]()
    loss = REGRESSION[model.loss](model)
    return losses.SignedLabelLoss(loss) if hasattr(model, "classes_") else loss  # on labels -1 and 1


class LeastSquaresDefinition(LinearDefinition):
    """LinearRegression: ``sum(w * (f - y)^2)``."""

    loss = losses.SquaredErrorLoss
    shape_parameters: Mapping[str, Any] | None = {}


class RidgeDefinition(LinearDefinition):
    """Ridge, RidgeCV, and their classifiers, which are Ridge on labels -1 and 1 of each class."""

    # sum(w * (f - y)^2) + alpha * |coef|^2, without an objective if alpha differs between outputs
    shape_parameters: Mapping[str, Any] | None = {}

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        alpha = single_value(getattr(model, "alpha_", getattr(model, "alpha", None)))
        if alpha is None:
            return None
        loss: losses.BaseLoss = losses.SquaredErrorLoss()
        loss = losses.SignedLabelLoss(loss) if hasattr(model, "classes_") else loss
        return Objective(loss, elastic(l2=alpha / (2 * total_weight)))


class BayesianRidgeDefinition(LinearDefinition):
    """BayesianRidge: ``alpha_ / 2 * sum(w * (f - y)^2) + lambda_ / 2 * |coef|^2`` with fitted factors."""

    def objective(self, model: Any, total_weight: float) -> Objective:
        l2 = model.lambda_ / (2 * model.alpha_ * total_weight)
        return Objective(losses.SquaredErrorLoss(), elastic(l2=l2))


def _factors(model: Any) -> tuple[float, float]:
    """Return the factors of absolute and of squared coefficients."""
    alpha = float(getattr(model, "alpha_", getattr(model, "alpha", 0.0)))
    ratio = float(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0)))
    return alpha * ratio, alpha * (1 - ratio) / 2


class ElasticNetDefinition(LinearDefinition):
    """Lasso, ElasticNet, LassoLars, and their variants with alpha by cross-validation or a criterion."""

    # sum(w * (f - y)^2) / (2 W) + alpha * ratio * |coef|_1 + alpha * (1 - ratio) / 2 * |coef|^2
    shape_parameters: Mapping[str, Any] | None = {}

    def objective(self, model: Any, total_weight: float) -> Objective:
        return Objective(losses.SquaredErrorLoss(), elastic(*_factors(model)))


class MultiTaskDefinition(LinearDefinition):
    """MultiTaskLasso and MultiTaskElasticNet, also with alpha by cross-validation."""

    # sum((f - y)^2) / (2 n) + alpha * ratio * sum_j |coef_j| + alpha * (1 - ratio) / 2 * |coef|^2, coef_j the
    # coefficients of feature j for all outputs
    shape_parameters: Mapping[str, Any] | None = {}

    def objective(self, model: Any, total_weight: float) -> Objective:
        l1, l2 = _factors(model)
        groups = GroupLassoPenalty(l1 / math.sqrt(len(np.atleast_2d(model.coef_))))
        both = PerWeightPenalty({"*coef_": groups, "*": L2Penalty(l2, weights="*coef_")})
        return Objective(losses.SquaredErrorLoss(), both if l2 else groups)


class HuberRegressorDefinition(LinearDefinition):
    """HuberRegressor: ``sum(w * (s + s * H((f - y) / s))) + alpha * |coef|^2``, s the fitted ``scale_``."""

    def objective(self, model: Any, total_weight: float) -> Objective:
        # s * H(r / s), H(z) = z^2 up to epsilon and 2 * epsilon * |z| - epsilon^2 beyond, is Huber's loss of
        # r with delta = epsilon * s, times 2 / s
        scale = float(model.scale_)
        loss = losses.HuberLoss(delta=float(model.epsilon) * scale)
        return Objective(loss, elastic(l2=model.alpha * scale / (2 * total_weight)))


class QuantileRegressorDefinition(LinearDefinition):
    """QuantileRegressor: ``sum(w * pinball(f, y)) / W + alpha * |coef|_1``."""

    shape_parameters: Mapping[str, Any] | None = {}

    def objective(self, model: Any, total_weight: float) -> Objective:
        return Objective(losses.QuantileLoss(float(model.quantile)), elastic(l1=model.alpha))


def _with_intercept(model: Any, l1: float, l2: float) -> BasePenalty:
    """Return the penalty of liblinear, which penalises ``intercept_ / intercept_scaling`` too."""
    scale = float(model.intercept_scaling)
    if scale == 1 or not model.fit_intercept:
        return elastic(l1, l2, intercept=True)
    return PerWeightPenalty({"*coef_": elastic(l1, l2), "*intercept_": elastic(l1 / scale, l2 / scale**2)})


class LogisticRegressionDefinition(LinearDefinition):
    """LogisticRegression and LogisticRegressionCV, without an objective if C differs between classes."""

    # C * sum(w * l) + ratio * |coef|_1 + (1 - ratio) / 2 * |coef|^2, divided by C W
    shape_parameters = {"max_iter": 1}

    def has_own_score(self, model: Any) -> bool:
        return getattr(model, "scoring", None) not in (None, "warn", "accuracy")  # "warn" is the default

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        strength, ratio = single_value(getattr(model, "C_", getattr(model, "C", None))), _l1_ratio(model)
        if strength is None or ratio is None:
            return None
        if getattr(model, "multi_class", "") == "multinomial" and len(model.coef_) == 1:
            return None  # the softmax of -f and f
        share = 0.0 if model.penalty is None or np.isinf(strength) else 1 / (strength * total_weight)
        l1, l2 = ratio * share, (1 - ratio) * share / 2
        is_liblinear = model.solver == "liblinear"
        return Objective(
            losses.LogLoss(), _with_intercept(model, l1, l2) if is_liblinear else elastic(l1, l2)
        )


def _l1_ratio(model: Any) -> float | None:
    """Return the L1 ratio from ``penalty`` (scikit-learn < 1.8) or ``l1_ratio``; None if several."""
    if model.penalty in ("l1", "l2"):
        return float(model.penalty == "l1")
    ratios = np.ravel(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 0.0)))
    return single_value([0.0 if ratio is None else ratio for ratio in ratios])


def _weights_of_classes(model: Any) -> str:
    """Return how class weights differ for several classes, as one-vs-rest models weight one class each."""
    if getattr(model, "class_weight", None) is None or len(np.atleast_2d(model.coef_)) < 2:
        return ""
    return "class_weight concerns one class of each one-vs-rest model there, and all samples of a class here"


class LinearSVMDefinition(LinearDefinition):
    """LinearSVC and LinearSVR: ``C * sum(w * l) + R``, divided by ``C W``."""

    # R is the norm |coef|_1 or |coef|^2 / 2
    shape_parameters: Mapping[str, Any] | None = {}

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        if getattr(model, "multi_class", "") == "crammer_singer":
            return None  # a loss of all classes together
        share, is_l1 = 1 / (model.C * total_weight), getattr(model, "penalty", "l2") == "l1"
        penalty = _with_intercept(model, share * is_l1, share * (not is_l1) / 2)
        return Objective(_loss_of(model), penalty, differs=_weights_of_classes(model))


class StochasticDefinition(LinearDefinition):
    """SGDClassifier, SGDRegressor, Perceptron, and passive-aggressive models, which have no penalty."""

    # sum(w * l) / n + alpha R, R the norm, for weights of mean one; one-vs-rest for several classes (Crammer
    # et al., "Online passive-aggressive algorithms", JMLR 7, 2006)
    shape_parameters: Mapping[str, Any] | None = ONE_EPOCH

    def parameters_for_shapes(self, estimator: Any) -> Mapping[str, Any] | None:
        loss = CLASSIFICATION.get(estimator.loss, losses.BaseLoss)
        return None if loss.degenerate else super().parameters_for_shapes(estimator)

    def objective(self, model: Any, total_weight: float) -> Objective:
        ratios = {None: 0.0, "l1": 1.0, "l2": 0.0, "elasticnet": float(model.l1_ratio or 0.0)}
        ratio, alpha = ratios[model.penalty], 0.0 if model.penalty is None else model.alpha
        penalty = elastic(alpha * ratio, alpha * (1 - ratio) / 2)
        loss = _loss_of(model)
        return Objective(loss, penalty, differs=loss.degenerate or _weights_of_classes(model))
