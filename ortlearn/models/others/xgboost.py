"""XGBoost: sums of the values of leaves, or linear models. It computes in float32."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...losses import (
    AbsoluteErrorLoss,
    BaseLoss,
    CrossEntropyLoss,
    GammaLoss,
    HingeLoss,
    LogLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredErrorLoss,
    TweedieLoss,
)
from .. import ModelDefinition, ModelWriter, Objective, Scores
from ..forms import AsIs, Form, Scaled
from ..scores import binary_classes, class_scores, decisions, indicator, regression
from ..trees import Nodes, leaf_numbers, leaf_sums
from .splits import boosting_objective, with_category_columns, with_codes
from .xgboost_json import LOGARITHMS, LOGITS, BaseScore, Booster, LeafValues, LinearWeights, booster_of

#: Losses of objectives, from the parameters of the estimator.
LOSSES: dict[str, Callable[[dict[str, Any]], BaseLoss]] = {
    "binary:hinge": lambda params: HingeLoss(),
    "binary:logistic": lambda params: LogLoss(),
    "count:poisson": lambda params: PoissonLoss(),
    "multi:softmax": lambda params: LogLoss(),
    "multi:softprob": lambda params: LogLoss(),
    "reg:absoluteerror": lambda params: AbsoluteErrorLoss(),
    "reg:gamma": lambda params: GammaLoss(),
    "reg:logistic": lambda params: CrossEntropyLoss(),
    "reg:quantileerror": lambda params: QuantileLoss(float(np.ravel(params["quantile_alpha"])[0])),
    "reg:squarederror": lambda params: SquaredErrorLoss(),
    "reg:tweedie": lambda params: TweedieLoss(float(params.get("tweedie_variance_power", 1.5))),
}
#: Objectives of numbers that no loss of ours is; scores are predictions.
WITHOUT_LOSS = {"rank:map", "rank:ndcg", "rank:pairwise", "reg:pseudohubererror", "reg:squaredlogerror"}


class BoosterDefinition(ModelDefinition):
    """What all estimators share: raw scores, and the objective."""

    takes_columns = True

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        booster, params = booster_of(model), model.get_params()
        one_quantile = np.size(params.get("quantile_alpha")) == 1
        known = booster.objective in LOSSES and not callable(params.get("objective"))
        weighs_classes = float(params.get("scale_pos_weight") or 1) != 1
        if not known or weighs_classes or not (booster.objective != "reg:quantileerror" or one_quantile):
            return None
        loss = LOSSES[booster.objective](params)
        l1, l2 = (params.get(name) for name in ("reg_alpha", "reg_lambda"))
        l1 = 0.0 if l1 is None else float(l1)
        if booster.is_linear:  # both are relative to the number of samples there
            return boosting_objective(loss, l1 * total_weight, float(l2 or 0) * total_weight, 1, total_weight)
        rate = 0.3 if params.get("learning_rate") is None else float(params["learning_rate"])
        parallel = int(booster.model["gbtree_model_param"]["num_parallel_tree"])
        # parallel trees are averaged, and each one minimises the objective alone
        strength = (1.0 if l2 is None else float(l2)) * parallel
        return boosting_objective(loss, l1, strength, rate, total_weight)

    def raw_scores(self, op: ModelWriter, model: Any, booster: Booster, x: Any) -> str:
        """Append raw scores, of shape (n, n_scores)."""
        x, missing = with_codes(op, model, x, booster.categories()), float(model.missing)
        if missing == missing:
            x = op.Where(op.Equal(x, np.array(missing, dtype=op.float_dtype)), float("nan"), x)
        reason = "the values of leaves, or the intercept, take its part"
        base = op.parameter(
            model, "base_score", role="intercept", name="base_values", access=BaseScore(), reason=reason
        )
        if booster.is_linear:
            # XGBoost adds the first one to all scores of a linear model
            return op.Add(_linear(op, model, x), op.Gather(base, [0], axis=0))
        return op.Add(_sums_of_leaves(op, model, booster, x), base)


def _linear(op: ModelWriter, model: Any, x: str) -> str:
    """Append a linear model, to which missing values are zero."""
    coef, intercept = LinearWeights(slice(None, -1)), LinearWeights(slice(-1, None))
    weight = op.parameter(model, "coef_", role="weight", access=coef)
    product = op.MatMul(op.Where(op.IsNaN(x), 0.0, x), weight)
    return op.Add(product, op.parameter(model, "intercept_", role="intercept", access=intercept))


def _sums_of_leaves(op: ModelWriter, model: Any, booster: Booster, x: str) -> str:
    places = booster.places()
    factors = booster.factors(places)
    form: Form = AsIs() if factors is None else Scaled(factors, "{} * weight_drop")
    table = op.parameter(
        model,
        "get_booster().leaf_values",
        form=form,
        role="table",
        name="leaf_values",
        access=LeafValues(),
    )
    nodes = Nodes.joined([booster.nodes(place) for place in places])
    first = np.cumsum(nodes.sizes) - nodes.sizes
    splits = [
        split
        for place, start in zip(places, first, strict=True)
        for split in booster.on_categories(place, int(start))
    ]
    n_columns = model.n_features_in_
    x, nodes, n_columns = with_category_columns(op, x, nodes, n_columns, splits, op.Floor)
    numbers = leaf_numbers(op, nodes, x, n_columns)
    return leaf_sums(op, table, numbers, len(places) // booster.n_scores, booster.n_scores)


class XGBRegressorDefinition(BoosterDefinition):
    """XGBRegressor, XGBRFRegressor, and XGBRanker, whose raw scores sort the samples of a query."""

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        booster = booster_of(model)
        name = booster.objective
        if name not in LOSSES and name not in WITHOUT_LOSS or name.startswith(("binary:", "multi:")):
            raise op.fail(
                model, f"its objective {name!r} has no form here: take a classifier or another one."
            )
        raw = self.raw_scores(op, model, booster, x)
        if name in LOGITS:
            return regression(op, op.Sigmoid(raw), booster.n_scores)
        return regression(op, raw, booster.n_scores, "log" if name in LOGARITHMS else "identity")


class XGBClassifierDefinition(BoosterDefinition):
    """XGBClassifier and XGBRFClassifier: two classes, several, or several labels at once."""

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        booster = booster_of(model)
        name = booster.objective
        known = ("binary:hinge", "binary:logistic", "multi:softmax", "multi:softprob")
        if name not in known or callable(model.get_params().get("objective")):
            raise op.fail(
                model,
                f"its objective {name!r} gives no probabilities that are known here: take 'binary:logistic' "
                "for two classes, 'multi:softprob' for more.",
            )
        raw = self.raw_scores(op, model, booster, x)
        classes = np.asarray(model.classes_)
        if name.startswith("multi:"):
            return class_scores(op, raw, classes)
        if name == "binary:hinge":
            second = op.Cast(op.Greater(raw, 0.0), to=op.elem_type)
            shares = op.Concat(op.Sub(1.0, second), second, axis=1)
            return decisions(op, raw, classes, probabilities=shares, decision="")
        if booster.n_scores > 1:
            return indicator(op, raw, np.arange(booster.n_scores), probabilities=op.Sigmoid(raw), decision="")
        return binary_classes(op, raw, classes)
