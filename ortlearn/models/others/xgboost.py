"""XGBoost: sums of the values of leaves, or linear models, in float32."""

import json
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from ... import losses
from ...boosting.packages import averages, grows_xgboost
from .. import ModelWriter, Objective, Scores
from ..capabilities import BoostedStages
from ..forms import AsIs, Form, Scaled
from ..trees import leaf_sums
from .boosters import CLASSIFIERS, Booster, Kind, boosting_objective, tree_leaves, with_codes
from .xgboost_json import Document, XGBoostBaseScore, XGBoostLeaves, XGBoostWeights, document_of


class XGBDefinition(Booster):
    """XGBoost's regressors, classifiers, and XGBRanker, whose raw scores rank the samples of a query."""

    takes_columns = True
    defaults = "reg:squarederror", "binary:logistic"
    supported = "a classifier or another objective", "'binary:logistic' or 'multi:softprob'"
    kinds = {
        "binary:hinge": Kind(lambda params: losses.HingeLoss(), "hinge"),
        "binary:logistic": Kind(lambda params: losses.LogLoss(), "logit"),
        "count:poisson": Kind(lambda params: losses.PoissonLoss()),
        **{
            f"multi:{name}": Kind(lambda params: losses.LogLoss(), "softmax")
            for name in ("softmax", "softprob")
        },
        **{f"rank:{name}": Kind() for name in ("map", "ndcg", "pairwise")},
        **{f"reg:{name}": Kind() for name in ("pseudohubererror", "squaredlogerror")},
        "reg:absoluteerror": Kind(lambda params: losses.AbsoluteErrorLoss()),
        "reg:gamma": Kind(lambda params: losses.GammaLoss()),
        "reg:logistic": Kind(lambda params: losses.CrossEntropyLoss(), "share"),
        "reg:quantileerror": Kind(lambda p: losses.QuantileLoss(float(np.ravel(p["quantile_alpha"])[0]))),
        "reg:squarederror": Kind(lambda params: losses.SquaredErrorLoss()),
        "reg:tweedie": Kind(lambda p: losses.TweedieLoss(float(p.get("tweedie_variance_power", 1.5)))),
    }

    @property
    def capabilities(self) -> Any:  # type: ignore[override]
        """Stages of boosted trees, and random forests for regression."""

        def own_loss(model: Any) -> losses.BaseLoss | None:
            named = None if callable(model.objective) else model.objective
            return None if callable(model.objective) else self.own_loss(model, named, model.get_params())

        def applies(model: Any) -> bool:
            known = is_regressor(model) or (is_classifier(model) and not _is_forest(model))
            return known and model.booster in (None, "gbtree")

        def grows(model: Any, objective: Any) -> Any:
            if _is_forest(model) and model.monotone_constraints is None:
                return averages(model, objective, "reg:squarederror", _set_leaves)
            return grows_xgboost(model, objective)

        return (BoostedStages(grows, own_loss, _own_scores, _shift, applies, several=True),)

    def needs_float64(self, model: Any, computed: bool) -> bool:
        return computed and model.booster != "gblinear"

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        learner, params = json.loads(model.get_booster().save_config())["learner"], model.get_params()
        name, booster = learner["objective"]["name"], learner["gradient_booster"]
        loss = self.kinds.get(name, Kind()).loss
        weighs_classes = float(params.get("scale_pos_weight") or 1) != 1
        quantiles = name == "reg:quantileerror" and np.size(params["quantile_alpha"]) != 1
        if loss is None or callable(params.get("objective")) or weighs_classes or quantiles:
            return None
        l1, l2 = (params.get(name) for name in ("reg_alpha", "reg_lambda"))
        l1, strength = float(l1 or 0), float(l2 or 0) * total_weight
        if booster["name"] == "gblinear":  # both are relative to the number of samples
            return boosting_objective(loss(params), l1 * total_weight, strength, 1, total_weight)
        rate = 0.3 if params.get("learning_rate") is None else float(params["learning_rate"])
        # parallel trees are averaged, and each one minimises the objective
        parallel = int(booster.get("gbtree", booster)["gbtree_model_param"]["num_parallel_tree"])
        strength = (1.0 if l2 is None else float(l2)) * parallel
        return boosting_objective(loss(params), l1, strength, rate, total_weight)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        document, is_classifier = document_of(model), hasattr(model, "predict_proba")
        is_custom = is_classifier and callable(model.get_params().get("objective"))
        kind = self.kind_of(op, model, "custom" if is_custom else document.objective)
        raw = _raw_scores(op, model, document, x)
        if not is_classifier:
            return self.regression_scores(op, kind, raw, model.get_params(), document.n_scores)
        if kind.output == "logit" and document.n_scores > 1:
            return CLASSIFIERS["labels"](op, raw, range(document.n_scores), decision="")
        return CLASSIFIERS[kind.output](op, raw, np.asarray(model.classes_))


def _is_forest(model: Any) -> bool:
    """Return whether an unfitted estimator is a random forest, possibly as one round of boosting."""
    one_round = model.n_estimators == 1 and model.learning_rate == 1 and (model.num_parallel_tree or 1) > 1
    return one_round or type(model).__name__.startswith("XGBRF")


def _set_leaves(model: Any, X: Any, values: Any) -> None:
    """Set the leaves of a random forest, which sums them, to the values of scores."""
    document, leaves, rows = document_of(model), model.apply(X), []
    base = np.resize(XGBoostBaseScore().read(model), document.n_scores)
    for tree in document.trees():
        own = leaves[:, tree.index]
        outputs = [document.model["tree_info"][tree.index]]
        outputs = list(range(document.n_scores)) if document.has_vectors else outputs
        rows.append(np.column_stack([values(own, i)[tree.leaves] - base[i] for i in outputs]))
    n_averaged = sum(row.shape[1] for row in rows) // document.n_scores
    XGBoostLeaves().write(model, np.concatenate(rows) / n_averaged)


def _own_scores(model: Any, X: Any) -> np.ndarray:
    return model.predict(X, output_margin=True)


def _shift(model: Any, shift: Any) -> None:
    base = XGBoostBaseScore()
    base.write(model, base.read(model) + shift)


def _raw_scores(op: ModelWriter, model: Any, document: Document, x: Any) -> str:
    """Append raw scores, of shape (n, n_scores)."""
    with op.in_types(floats=op.sample_dtype):
        x, missing = with_codes(op, model, x, document.categories()), float(model.missing)
        if missing == missing:
            x = op.Where(op.Equal(x, np.array(missing, dtype=op.float_dtype)), float("nan"), x)
    options: Any = {"name": "base_values", "access": XGBoostBaseScore()}
    options["reason"] = "the values of leaves, or the intercept, are trained instead"
    base = op.parameter(model, "base_score", role="intercept", **options)
    if document.is_linear:  # XGBoost adds the first base score to all scores of a linear model
        return op.Add(_linear(op, model, x), op.Gather(base, [0], axis=0))
    used = document.trees()
    factors = document.factors(used)
    form: Form = AsIs() if factors is None else Scaled(factors, "{} * weight_drop")
    options = {"form": form, "name": "leaf_values", "access": XGBoostLeaves()}
    table = op.parameter(model, "get_booster().leaf_values", role="table", **options)
    trees = [(document.nodes(tree), list(document.category_splits(tree))) for tree in used]
    with op.in_types(floats=op.sample_dtype):
        numbers = tree_leaves(op, x, model.n_features_in_, trees, op.Floor)
    sums = leaf_sums(op, table, numbers, len(used) // document.n_scores, document.n_scores)
    return op.Add(sums, base)


def _linear(op: ModelWriter, model: Any, x: str) -> str:
    """Append a linear model, with zeros for missing values."""
    coef, intercept = XGBoostWeights(slice(None, -1)), XGBoostWeights(slice(-1, None))
    weight = op.parameter(model, "coef_", role="weight", access=coef)
    product = op.MatMul(op.Where(op.IsNaN(x), 0.0, x), weight)
    return op.Add(product, op.parameter(model, "intercept_", role="intercept", access=intercept))
