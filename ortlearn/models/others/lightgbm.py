"""LightGBM: sums of the values of leaves.

What is read and set is what LightGBM documents: ``Booster.dump_model``, ``get_leaf_output`` and
``set_leaf_output``. Where samples go is described under "Missing Value Handle" and "Categorical Feature
Support" of its advanced topics.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...losses import (
    AbsoluteErrorLoss,
    BaseLoss,
    CrossEntropyLoss,
    GammaLoss,
    HuberLoss,
    LogLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredErrorLoss,
    TweedieLoss,
)
from .. import Access, ModelDefinition, ModelWriter, Objective, Scores
from ..forms import AsIs, Scaled
from ..scores import binary_classes, class_scores, decisions, regression
from ..trees import Nodes, leaf_numbers, leaf_sums
from .splits import CategorySplit, boosting_objective, with_category_columns, with_codes

#: Numbers up to it count as zero.
ZERO = 1e-35
#: Losses of objectives by their names in a booster, from the parameters of the fit.
LOSSES: dict[str, Callable[[dict[str, Any]], BaseLoss]] = {
    "binary": lambda params: LogLoss(),
    "cross_entropy": lambda params: CrossEntropyLoss(),
    "gamma": lambda params: GammaLoss(),
    "huber": lambda params: HuberLoss(params["alpha"]),
    "multiclass": lambda params: LogLoss(),
    "multiclassova": lambda params: LogLoss(),
    "poisson": lambda params: PoissonLoss(),
    "quantile": lambda params: QuantileLoss(params["alpha"]),
    "regression": lambda params: SquaredErrorLoss(),
    "regression_l1": lambda params: AbsoluteErrorLoss(),
    "tweedie": lambda params: TweedieLoss(params["tweedie_variance_power"]),
}
#: Objectives of a number that no loss of ours is.
WITHOUT_LOSS = {"fair", "lambdarank", "mape", "rank_xendcg", "custom"}


class LeafOutputs(Access):
    """Values of the leaves, those of a tree after those of the one before."""

    def __init__(self, sizes: list[int]):
        self.places = [(tree, leaf) for tree, size in enumerate(sizes) for leaf in range(size)]

    def read(self, owner: Any) -> np.ndarray:
        return np.array([owner.booster_.get_leaf_output(*place) for place in self.places])

    def write(self, owner: Any, value: np.ndarray) -> None:
        for place, output in zip(self.places, value, strict=True):
            owner.booster_.set_leaf_output(*place, output)


class Splits:
    """The splits of one tree, by their numbers, as ``dump_model`` has them."""

    def __init__(self, tree: dict[str, Any]):
        found: dict[int, dict[str, Any]] = {}
        waiting = [tree["tree_structure"]]
        for node in waiting:
            if "split_index" in node:
                found[node["split_index"]] = node
                waiting += [node["left_child"], node["right_child"]]
        self.splits = [found[number] for number in range(len(found))]

    def _number(self, child: dict[str, Any]) -> int:
        if "split_index" in child:
            return child["split_index"]
        return len(self.splits) + child["leaf_index"]

    def nodes(self, zeros: dict[int, int]) -> Nodes:
        """Return the splits as arrays; those on categories compare nothing yet.

        ``zeros`` has the columns that are compared in the place of others where zeros are missing values.
        """
        by_category = [split["decision_type"] == "==" for split in self.splits]
        return Nodes.of_splits(
            left=[self._number(split["left_child"]) for split in self.splits],
            right=[self._number(split["right_child"]) for split in self.splits],
            feature=[
                zeros[split["split_feature"]] if _misses_zeros(split) else split["split_feature"]
                for split in self.splits
            ],
            threshold=[
                0.0 if category else split["threshold"]
                for category, split in zip(by_category, self.splits, strict=True)
            ],
            missing_left=[
                not category and _missing_left(split)
                for category, split in zip(by_category, self.splits, strict=True)
            ],
        )

    def on_categories(self, first: int) -> list[CategorySplit]:
        """Return the splits on categories of a tree whose first node has a number among those of all trees.

        Missing values, and numbers that are no category, go right.
        """
        return [
            CategorySplit(
                first + number,
                split["split_feature"],
                tuple(int(category) for category in str(split["threshold"]).split("||")),
                left=True,
                missing_left=False,
            )
            for number, split in enumerate(self.splits)
            if split["decision_type"] == "=="
        ]


def _missing_left(split: dict[str, Any]) -> bool:
    """Return whether missing values go left; they count as zero where the fit knew of none."""
    return split["threshold"] >= 0 if split["missing_type"] == "None" else split["default_left"]


def _misses_zeros(split: dict[str, Any]) -> bool:
    """Return whether a split takes zeros for missing values."""
    return split["missing_type"] == "Zero" and split["decision_type"] == "<="


class BoosterDefinition(ModelDefinition):
    """What all estimators share: sums of the values of leaves, and the objective."""

    takes_columns = True

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        booster, params = model.booster_.dump_model(num_iteration=1), _params(model)
        name = _objective_name(booster)
        if name not in LOSSES or "sqrt" in booster["objective"].split() or _weighs_classes(params):
            return None
        # a random forest is a mean of trees, each of which minimises the objective alone
        averages = booster["average_output"]
        rate = 1.0 if averages else params["learning_rate"]
        l2 = params["lambda_l2"] * (model.booster_.current_iteration() if averages else 1)
        return boosting_objective(LOSSES[name](params), params["lambda_l1"], l2, rate, total_weight)

    def raw_scores(self, op: ModelWriter, model: Any, booster: dict[str, Any], x: Any) -> str:
        """Append the sums of the values of leaves, of shape (n, number of trees in a round)."""
        if _params(model)["linear_tree"]:
            raise op.fail(
                model,
                "its leaves hold linear models, which LightGBM offers no way to set: leave out linear_tree.",
            )
        trees, n_scores = booster["tree_info"], booster["num_tree_per_iteration"]
        n_rounds = len(trees) // n_scores
        table = op.parameter(
            model,
            "booster_.leaf_outputs",
            form=Scaled(1 / n_rounds) if booster["average_output"] else AsIs(),
            role="table",
            name="leaf_values",
            access=LeafOutputs([tree["num_leaves"] for tree in trees]),
        )
        x = with_codes(op, model, x, _categories(op, model, booster))
        parts = [Splits(tree) for tree in trees]
        splits = [split for part in parts for split in part.splits]
        missing = sorted({split["split_feature"] for split in splits if _misses_zeros(split)})
        n_columns = model.n_features_in_
        zeros = {feature: n_columns + place for place, feature in enumerate(missing)}
        nodes = Nodes.joined([part.nodes(zeros) for part in parts])
        if zeros:
            x, n_columns = op.Concat(x, _without_zeros(op, x, missing), axis=1), n_columns + len(zeros)
        first = np.cumsum(nodes.sizes) - nodes.sizes
        on_categories = [
            split
            for part, start in zip(parts, first, strict=True)
            for split in part.on_categories(int(start))
        ]
        x, nodes, n_columns = with_category_columns(
            op, x, nodes, n_columns, on_categories, partial(_truncated, op)
        )
        numbers = leaf_numbers(op, nodes, x, n_columns, in_float32=False)
        return leaf_sums(op, table, numbers, n_rounds, n_scores)


def _params(model: Any) -> dict[str, Any]:
    """Return the parameters of the fit by their main names; an estimator has them by others, too."""
    return copy.deepcopy(model.booster_).params


def _objective_name(booster: dict[str, Any]) -> str:
    """Return the first word of an objective such as ``"binary sigmoid:1"``; that of a function is custom."""
    return booster.get("objective", "custom").split()[0]


def _option(booster: dict[str, Any], name: str) -> float:
    """Return a number that an objective is written with, 1 where it is not."""
    pairs = [word.partition(":") for word in booster["objective"].split()]
    return next((float(value) for key, _, value in pairs if key == name), 1.0)


def _weighs_classes(params: dict[str, Any]) -> bool:
    """Return whether the two classes have weights that are no parameter ``class_weight``."""
    return bool(params["is_unbalance"]) or params["scale_pos_weight"] != 1


def _truncated(op: ModelWriter, column: str) -> str:
    """Append numbers without their decimals, as LightGBM reads categories."""
    return op.Where(op.Less(column, 0.0), op.Ceil(column), op.Floor(column))


def _without_zeros(op: ModelWriter, x: str, columns: list[int]) -> str:
    """Append some columns of X, with NaN in the place of zeros."""
    values = op.columns(x, columns)
    return op.Where(op.LessOrEqual(op.Abs(values), ZERO), float("nan"), values)


def _categories(op: ModelWriter, model: Any, booster: dict[str, Any]) -> dict[int, list[Any]]:
    """Return the categories that a fit on a frame made codes of, by the positions of their columns."""
    known = booster.get("pandas_categorical") or []
    infos, names = booster["feature_infos"], booster["feature_names"]
    places = [place for place, name in enumerate(names) if infos.get(name, {}).get("values")]
    if known and len(places) != len(known):
        raise op.fail(
            model,
            f"of {len(known)} columns of categories it splits on {len(places)} as such, and LightGBM does "
            "not say which: leave out columns of a single category, and make ordered categories numbers.",
        )
    return dict(zip(places, known, strict=True)) if known else {}


class LGBMRegressorDefinition(BoosterDefinition):
    """LGBMRegressor, and LGBMRanker, whose raw scores sort the samples of a query."""

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        booster = model.booster_.dump_model()
        name = _objective_name(booster)
        raw = self.raw_scores(op, model, booster, x)
        if name == "cross_entropy":
            return regression(op, op.Sigmoid(raw))
        if name not in LOSSES and name not in WITHOUT_LOSS or name.startswith(("binary", "multiclass")):
            raise op.fail(
                model, f"its objective {name!r} has no form here: take a classifier or another one."
            )
        if name in LOSSES and "sqrt" in booster["objective"].split():
            return regression(op, op.Mul(raw, op.Abs(raw)))
        link = LOSSES[name](_params(model)).link if name in LOSSES else "identity"
        return regression(op, raw, link=link)


class LGBMClassifierDefinition(BoosterDefinition):
    """LGBMClassifier: two classes, the softmax of several, or each one against the others."""

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        booster = model.booster_.dump_model()
        name, n_scores = _objective_name(booster), booster["num_tree_per_iteration"]
        if name not in ("binary", "multiclass", "multiclassova") or (
            name == "multiclassova" and n_scores == 2
        ):
            raise op.fail(
                model,
                f"its objective {name!r} gives no probabilities that are known here: take 'binary' for two "
                "classes, 'multiclass' or 'multiclassova' for more.",
            )
        raw = self.raw_scores(op, model, booster, x)
        if name == "multiclass":
            return class_scores(op, raw, model.classes_)
        slope = _option(booster, "sigmoid")
        score = raw if slope == 1 else op.Mul(raw, slope)
        if name == "binary":
            return binary_classes(op, score, model.classes_, decision=raw)
        return decisions(op, score, model.classes_, probabilities=op.Sigmoid(score), decision=raw)
