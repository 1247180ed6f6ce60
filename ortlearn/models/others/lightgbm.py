"""LightGBM: sums of the values of leaves."""

# Booster.dump_model returns trees, and get_leaf_output leaves. Splits follow "Missing Value Handle" and
# "Categorical Feature Support" of LightGBM's advanced topics.

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from ... import losses
from ...boosting.packages import averages_lightgbm, grows_lightgbm, shift_lightgbm
from .. import Access, ModelWriter, Objective, Scores
from ..capabilities import BoostedStages
from ..forms import AsIs, Scaled
from ..scores import regression
from ..trees import Nodes, leaf_sums
from .boosters import CLASSIFIERS, Booster, CategorySplit, Kind, boosting_objective, tree_leaves, with_codes

ZERO = 1e-35  # largest magnitude that counts as zero


@dataclass(frozen=True)
class LightGBMLeaves(Access):
    """Values of the leaves, tree by tree."""

    sizes: tuple[int, ...]

    @property
    def positions(self) -> list[tuple[int, int]]:
        """Tree and number of each leaf."""
        return [(tree, leaf) for tree, size in enumerate(self.sizes) for leaf in range(size)]

    def read(self, owner: Any) -> np.ndarray:
        return np.array([owner.booster_.get_leaf_output(*position) for position in self.positions])

    def write(self, owner: Any, value: np.ndarray) -> None:
        for position, output in zip(self.positions, value, strict=True):
            owner.booster_.set_leaf_output(*position, output)


def _splits(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the splits of a tree of ``dump_model`` in the order of their indices."""
    nodes = [tree["tree_structure"]]
    for node in nodes:
        nodes += [node["left_child"], node["right_child"]] if "split_index" in node else []
    return sorted((n for n in nodes if "split_index" in n), key=itemgetter("split_index"))


def _nodes(splits: list[dict[str, Any]], zeros: dict[int, int]) -> tuple[Nodes, list[CategorySplit]]:
    """Return the splits of a tree as arrays, and its splits on categories, whose thresholds are not set."""
    # ``zeros`` maps columns to their copies with missing values for zeros. Missing values and unknown
    # categories go right at a split on categories.
    children: dict[str, list[int]] = {"left_child": [], "right_child": []}
    feature, threshold, missing_left, category_splits = [], [], [], []
    for number, split in enumerate(splits):
        for side, numbers in children.items():
            child = split[side]
            numbers.append(child.get("split_index", len(splits) + child.get("leaf_index", 0)))
        column, limit = split["split_feature"], split["threshold"]
        feature.append(zeros[column] if _misses_zeros(split) else column)
        if split["decision_type"] == "==":
            categories = tuple(map(int, str(limit).split("||")))
            category_splits.append(CategorySplit(number, column, categories, left=True, missing_left=False))
            limit, low = 0.0, False
        else:  # missing values count as zero if the fit had none
            low = limit >= 0 if split["missing_type"] == "None" else split["default_left"]
        threshold.append(limit)
        missing_left.append(low)
    left, right = children.values()
    return Nodes.of_splits(left, right, feature, threshold, missing_left), category_splits


def _misses_zeros(split: dict[str, Any]) -> bool:
    """Return whether a split treats zeros as missing values."""
    return split["missing_type"] == "Zero" and split["decision_type"] == "<="


class LGBMDefinition(Booster):
    """LGBMRegressor, LGBMClassifier, and LGBMRanker, whose raw scores rank the samples of a query."""

    takes_columns = True
    defaults = "regression", "binary"
    supported = "a classifier or another objective", "'binary', 'multiclass' or 'multiclassova'"
    kinds = {
        "binary": Kind(lambda params: losses.LogLoss(), "logit"),
        "cross_entropy": Kind(lambda params: losses.CrossEntropyLoss(), "share"),
        **{name: Kind() for name in ("custom", "fair", "lambdarank", "mape", "rank_xendcg")},
        "gamma": Kind(lambda params: losses.GammaLoss()),
        "huber": Kind(lambda params: losses.HuberLoss(params["alpha"])),
        "multiclass": Kind(lambda params: losses.LogLoss(), "softmax"),
        "multiclassova": Kind(lambda params: losses.LogLoss(), "logits"),
        "poisson": Kind(lambda params: losses.PoissonLoss()),
        "quantile": Kind(lambda params: losses.QuantileLoss(params["alpha"])),
        "regression": Kind(lambda params: losses.SquaredErrorLoss()),
        "regression_l1": Kind(lambda params: losses.AbsoluteErrorLoss()),
        "tweedie": Kind(lambda params: losses.TweedieLoss(params["tweedie_variance_power"])),
    }

    @property
    def capabilities(self) -> Any:  # type: ignore[override]
        """Stages of boosting, and random forests for regression."""

        def own_loss(model: Any) -> losses.BaseLoss | None:
            params = {"alpha": 0.9, "tweedie_variance_power": 1.5} | model.get_params()
            return None if callable(model.objective) else self.own_loss(model, model.objective, params)

        def applies(model: Any) -> bool:
            return is_regressor(model) or (is_classifier(model) and not _averages(model))

        def grows(model: Any, objective: Any) -> Any:
            return (averages_lightgbm if _averages(model) else grows_lightgbm)(model, objective)

        return (BoostedStages(grows, own_loss, _own_scores, shift_lightgbm, applies),)

    def needs_float64(self, model: Any, computed: bool) -> bool:
        return True

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        booster, params = model.booster_.dump_model(num_iteration=1), _params(model)
        name, *options = _words(booster)
        loss = self.kinds.get(name, Kind()).loss
        # class weights other than the parameter class_weight
        weighs_classes = params["is_unbalance"] or params["scale_pos_weight"] != 1
        if loss is None or "sqrt" in options or weighs_classes:
            return None
        # a random forest is a mean of trees, each of which minimises the objective
        averages = booster["average_output"]
        rate = 1.0 if averages else params["learning_rate"]
        l2 = params["lambda_l2"] * (model.booster_.current_iteration() if averages else 1)
        return boosting_objective(loss(params), params["lambda_l1"], l2, rate, total_weight)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        booster = model.booster_.dump_model()
        name, *options = _words(booster)
        of_two = name == "multiclassova" and booster["num_tree_per_iteration"] == 2
        kind = self.kind_of(op, model, f"{name} of two classes" if of_two else name)
        raw = _raw_scores(op, model, booster, x)
        if kind.output in CLASSIFIERS:
            pairs = [option.partition(":") for option in options]
            slope = next((float(value) for key, _, value in pairs if key == "sigmoid"), 1.0)
            score = raw if slope == 1 else op.Mul(raw, slope)
            return CLASSIFIERS[kind.output](op, score, model.classes_, decision=raw)
        if "sqrt" in options and kind.loss and kind.output == "number":
            return regression(op, op.Mul(raw, op.Abs(raw)))
        return self.regression_scores(op, kind, raw, _params(model))


def _averages(model: Any) -> bool:
    """Return whether an unfitted estimator is a random forest."""
    given = model.get_params()
    return any(given.get(name) in ("rf", "random_forest") for name in ("boosting_type", "boosting", "boost"))


def _own_scores(model: Any, X: Any) -> np.ndarray:
    found = model.predict(X, raw_score=True)  # of a random forest, the sum instead of the mean
    return found / model.booster_.current_iteration() if _averages(model) else found


def _raw_scores(op: ModelWriter, model: Any, booster: dict[str, Any], x: Any) -> str:
    """Append the sums of the values of leaves, of shape (n, number of trees in a round)."""
    if _params(model)["linear_tree"]:
        raise op.fail(model, "its leaves hold linear models, which LightGBM cannot set: drop linear_tree.")
    trees, n_scores = booster["tree_info"], booster["num_tree_per_iteration"]
    n_rounds = len(trees) // n_scores
    form = Scaled(1 / n_rounds) if booster["average_output"] else AsIs()
    access = LightGBMLeaves(tuple(tree["num_leaves"] for tree in trees))
    options: Any = {"role": "table", "name": "leaf_values", "access": access}
    table = op.parameter(model, "booster_.leaf_outputs", form=form, **options)
    with op.in_types(floats=op.sample_dtype):
        numbers = _leaf_numbers(op, model, booster, x)
    return leaf_sums(op, table, numbers, n_rounds, n_scores)


def _leaf_numbers(op: ModelWriter, model: Any, booster: dict[str, Any], x: Any) -> str:
    """Append the indices of the leaves that samples reach, of shape (n, n_trees)."""
    trees, n_columns = booster["tree_info"], model.n_features_in_
    x = with_codes(op, model, x, _categories(op, model, booster))
    parts = [_splits(tree) for tree in trees]
    missing = sorted({own["split_feature"] for splits in parts for own in splits if _misses_zeros(own)})
    zeros = {feature: n_columns + i for i, feature in enumerate(missing)}
    if zeros:
        values = op.columns(x, missing)
        present = op.Where(op.LessOrEqual(op.Abs(values), ZERO), float("nan"), values)
        x, n_columns = op.Concat(x, present, axis=1), n_columns + len(zeros)
    nodes = [_nodes(splits, zeros) for splits in parts]

    def to_integer(column: str) -> str:  # LightGBM truncates categories to integers
        return op.Where(op.Less(column, 0.0), op.Ceil(column), op.Floor(column))

    return tree_leaves(op, x, n_columns, nodes, to_integer, in_float32=False)


def _params(model: Any) -> dict[str, Any]:
    """Return the parameters of the fit by their main names instead of aliases."""
    text = model.booster_.model_to_string(num_iteration=1)  # the copy of a booster takes all trees
    return type(model.booster_)(model_str=text).params


def _words(booster: dict[str, Any]) -> list[str]:
    """Return the words of an objective such as ``"binary sigmoid:1"``, "custom" for a function."""
    return booster.get("objective", "custom").split()


def _categories(op: ModelWriter, model: Any, booster: dict[str, Any]) -> dict[int, list[Any]]:
    """Return the categories of a fit on a frame in the order of their codes, by column position."""
    known = booster.get("pandas_categorical") or []
    infos, names = booster["feature_infos"], booster["feature_names"]
    positions = [position for position, name in enumerate(names) if infos.get(name, {}).get("values")]
    if known and len(positions) != len(known):
        raise op.fail(
            model,
            f"it splits on {len(positions)} of {len(known)} columns of categories, and LightGBM does not "
            "report which: drop columns of a single category, and convert ordered categories to numbers.",
        )
    return dict(zip(positions, known, strict=True)) if known else {}
