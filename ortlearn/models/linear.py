"""Linear and generalised linear models."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import losses
from .base import ModelDefinition, Objective
from .constraints.signs import NotNegative
from .forms import Reshaped, Transposed
from .fusion import FusedLinear
from .objectives import elastic
from .scores import Scores, binary_classes, class_scores, decisions, indicator, one_against_rest, regression
from .writer import ModelWriter


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


class _Linear(ModelDefinition):
    """Models with linear scores."""

    flexible = False
    shape_parameters: Mapping[str, Any] | None = {}

    def parameters_for_shapes(self, estimator: Any) -> Mapping[str, Any] | None:
        selects_penalty = {"cv", "criterion"} & estimator.get_params(deep=False).keys()
        return None if selects_penalty else self.shape_parameters

    def covers(self, model: Any) -> bool:
        return isinstance(model.coef_, np.ndarray)


class LinearRegressorDefinition(_Linear):
    """Regressors that predict ``x @ coef_.T + intercept_``."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return regression(op, linear_scores(op, model, x), len(np.atleast_2d(model.coef_)))

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

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        # sum(w * d(y, f)) / (2 sum(w)) + alpha / 2 * |coef|^2, the deviance d twice our losses (user guide of
        # scikit-learn, "Generalized Linear Models")
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


class LinearClassifierDefinition(_Linear):
    """Classifiers with linear decisions, and probabilities if the model has them."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        score, classes = linear_scores(op, model, x), model.classes_
        if getattr(getattr(model, "_label_binarizer", None), "y_type_", "").startswith("multilabel"):
            return indicator(op, score, classes)
        if not hasattr(model, "predict_proba"):
            return decisions(op, score, classes)
        if getattr(model, "loss", "") == "modified_huber":
            return _modified_huber(op, score, classes)
        if len(np.atleast_2d(model.coef_)) == 1:
            return binary_classes(op, score, classes)
        one_each = hasattr(model, "loss") or getattr(model, "solver", "") == "liblinear"
        if one_each or getattr(model, "multi_class", "") == "ovr":
            return one_against_rest(op, score, classes)
        return class_scores(op, score, classes)


def _modified_huber(op: ModelWriter, score: str, classes: np.ndarray) -> Scores:
    """Append ``(clip(score, -1, 1) + 1) / 2``, divided by its sum (Zadrozny and Elkan, KDD 2002)."""
    shares = op.Div(op.Add(op.Max(op.Min(score, 1.0), -1.0), 1.0), 2.0)
    if len(classes) == 2:
        return decisions(op, score, classes, probabilities=op.binary_probabilities(shares))
    return decisions(op, score, classes, probabilities=op.normalized(shares, 1.0 / len(classes)))
