"""XGBoost: sums of the values of leaves, or linear models.

A booster is read as JSON, and given back as JSON ("Introduction to Model IO" of its documentation, with the
schema of the document); "Categorical Data" tells where categories go. XGBoost computes in float32.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from .. import Access, ModelDefinition, ModelWriter, Objective, Scores
from ..forms import AsIs, Form, Scaled
from ..scores import binary_classes, class_scores, decisions, indicator, regression
from ..trees import Nodes, leaf_numbers, leaf_sums
from .splits import CategorySplit, boosting_objective, with_category_columns, with_codes

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
#: Objectives whose raw scores are logits, or logarithms, of what base_score is.
LOGITS = {"binary:logistic", "reg:logistic"}
LOGARITHMS = {"count:poisson", "reg:gamma", "reg:tweedie"}


def _document(model: Any) -> dict[str, Any]:
    """Return the booster of an estimator as JSON has it."""
    return json.loads(bytes(model.get_booster().save_raw(raw_format="json")))


def _texts(known: dict[str, Any]) -> list[str]:
    """Return the texts whose bytes lie one after the other."""
    text, ends = np.array(known["values"]).astype(np.uint8).tobytes(), known["offsets"]
    return [text[begin:end].decode() for begin, end in zip(ends[:-1], ends[1:], strict=True)]


def _set_document(model: Any, document: dict[str, Any]) -> None:
    model.get_booster().load_model(bytearray(json.dumps(document), "utf-8"))


@dataclass(frozen=True)
class Place:
    """A tree that predictions add up, and its reachable nodes: the splits, the root first, and the leaves."""

    tree: int
    splits: list[int]
    leaves: list[int]


class Booster:
    """What is in the JSON of a booster, and where."""

    def __init__(self, document: dict[str, Any]):
        learner = document["learner"]
        self.booster = learner["gradient_booster"]
        self.objective = learner["objective"]["name"]
        self.sizes = learner["learner_model_param"]
        self.attributes = learner["attributes"]
        #: Raw scores of a sample.
        self.n_scores = max(int(self.sizes["num_class"]), int(self.sizes.get("num_target", 1)), 1)

    @property
    def is_linear(self) -> bool:
        """Whether it is a linear model."""
        return self.booster["name"] == "gblinear"

    @property
    def model(self) -> dict[str, Any]:
        """Trees, or weights."""
        return self.booster["gbtree"]["model"] if self.booster["name"] == "dart" else self.booster["model"]

    @property
    def has_vectors(self) -> bool:
        """Whether leaves have a value for each score."""
        return any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in self.model["trees"])

    @property
    def n_trees(self) -> int:
        """Number of trees up to the best iteration."""
        rounds = int(self.attributes.get("best_iteration", -2)) + 1
        return self.model["iteration_indptr"][rounds]

    def categories(self) -> dict[int, list[Any]]:
        """Return the categories that a fit on a frame made codes of, by the positions of their columns."""
        return {
            place: _texts(known) if "offsets" in known else known["values"]
            for place, known in enumerate(self.model.get("cats", {}).get("enc", ()))
            if known["values"]
        }

    def places(self) -> list[Place]:
        """Return the trees, of each round that of the first score first."""
        rank: dict[int, int] = {}
        order = []
        for number, score in enumerate(self.model["tree_info"][: self.n_trees]):
            rank[score] = rank.get(score, -1) + 1
            order.append((rank[score], score, number))
        return [self._place(number) for _, _, number in sorted(order)]

    def _place(self, number: int) -> Place:
        tree, waiting = self.model["trees"][number], [0]
        for node in waiting:
            if tree["left_children"][node] >= 0:
                waiting += [tree["left_children"][node], tree["right_children"][node]]
        splits = [node for node in waiting if tree["left_children"][node] >= 0]
        return Place(number, splits, [node for node in waiting if tree["left_children"][node] < 0])

    def factors(self, places: list[Place]) -> np.ndarray | None:
        """Return the weight of the tree of each leaf, as dropout of trees gives them; None for ones."""
        weights = self.model.get("weight_drop") or self.booster.get("weight_drop") or [1.0]
        if set(weights) == {1.0}:
            return None
        return np.concatenate([np.full(len(place.leaves), weights[place.tree]) for place in places])

    def nodes(self, place: Place) -> Nodes:
        """Return a tree as arrays; splits on categories compare nothing yet."""
        tree, n_splits = self.model["trees"][place.tree], len(place.splits)
        number = {node: i for i, node in enumerate(place.splits)}
        number |= {node: n_splits + i for i, node in enumerate(place.leaves)}
        values = np.array([tree["split_conditions"][node] for node in place.splits], dtype=np.float32)
        return Nodes.of_splits(
            left=[number[tree["left_children"][node]] for node in place.splits],
            right=[number[tree["right_children"][node]] for node in place.splits],
            feature=[tree["split_indices"][node] for node in place.splits],
            threshold=np.nextafter(values, np.float32(-np.inf)),  # smaller ones go left
            missing_left=[bool(tree["default_left"][node]) for node in place.splits],
        )

    def on_categories(self, place: Place, first: int) -> Iterator[CategorySplit]:
        """Yield the splits on categories of a tree whose first node has a number among those of all trees.

        Named categories go right, others left.
        """
        tree = self.model["trees"][place.tree]
        number = {node: i for i, node in enumerate(place.splits)}
        parts = zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
        )
        for node, begin, size in parts:
            if node in number:
                yield CategorySplit(
                    first + number[node],
                    tree["split_indices"][node],
                    tuple(tree["categories"][begin : begin + size]),
                    left=False,
                    missing_left=bool(tree["default_left"][node]),
                )


class LeafValues(Access):
    """Values of the leaves, in the order of the trees of :meth:`Booster.places`.

    They have the shape (n_leaves,), or (n_leaves, n_scores) where each leaf has a value for every score.
    """

    def read(self, owner: Any) -> np.ndarray:
        booster = Booster(_document(owner))
        values = [values[begin:end] for values, begin, end in self._entries(booster)]
        return np.array(values, dtype=np.float64).reshape(
            (-1, booster.n_scores) if booster.has_vectors else -1
        )

    def write(self, owner: Any, value: np.ndarray) -> None:
        document = _document(owner)
        entries = self._entries(Booster(document))
        for (values, begin, end), own in zip(entries, value, strict=True):
            values[begin:end] = np.ravel(own).astype(np.float32).astype(float).tolist()
        _set_document(owner, document)

    @staticmethod
    def _entries(booster: Booster) -> Iterator[tuple[list[float], int, int]]:
        """Yield the list that has the value of each leaf, and where it begins and ends."""
        size = booster.n_scores
        for place in booster.places():
            tree = booster.model["trees"][place.tree]
            for leaf in place.leaves:
                if booster.has_vectors:
                    row = tree["right_children"][leaf]
                    yield tree["leaf_weights"], row * size, (row + 1) * size
                else:
                    yield tree["split_conditions"], leaf, leaf + 1


class LinearWeights(Access):
    """Weights of a linear booster, of shape (n_features, n_scores), or the last row: the intercepts."""

    def __init__(self, rows: slice):
        self.rows = rows

    def _table(self, document: dict[str, Any]) -> np.ndarray:
        booster = Booster(document)
        return np.reshape(np.array(booster.model["weights"], dtype=np.float64), (-1, booster.n_scores))

    def read(self, owner: Any) -> np.ndarray:
        return self._table(_document(owner))[self.rows].copy()

    def write(self, owner: Any, value: np.ndarray) -> None:
        document = _document(owner)
        table = self._table(document)
        table[self.rows] = value
        Booster(document).model["weights"] = table.astype(np.float32).astype(float).ravel().tolist()
        _set_document(owner, document)


class BaseScore(Access):
    """Raw scores that boosting starts from, of shape (1 or n_scores,)."""

    def read(self, owner: Any) -> np.ndarray:
        booster = Booster(_document(owner))
        text = booster.sizes["base_score"].strip("[]")
        value = np.array([np.float32(number) for number in text.split(",")], dtype=np.float64)
        if booster.objective in LOGITS:
            return np.log(value) - np.log1p(-value)
        return np.log(value) if booster.objective in LOGARITHMS else value

    def write(self, owner: Any, value: np.ndarray) -> None:
        document = _document(owner)
        booster = Booster(document)
        if booster.objective in LOGITS:
            value = 1 / (1 + np.exp(-value))
        elif booster.objective in LOGARITHMS:
            value = np.exp(value)
        text = ",".join(f"{np.float32(number):.9g}" for number in value)
        in_brackets = booster.sizes["base_score"].startswith("[")
        booster.sizes["base_score"] = f"[{text}]" if in_brackets else text
        _set_document(owner, document)


class BoosterDefinition(ModelDefinition):
    """What all estimators share: raw scores, and the objective."""

    takes_columns = True

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        booster, params = Booster(_document(model)), model.get_params()
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
    if booster.has_vectors:
        return op.ReduceSum(op.Gather(table, numbers, axis=0), [1], keepdims=0)
    return leaf_sums(op, table, numbers, len(places) // booster.n_scores, booster.n_scores)


class XGBRegressorDefinition(BoosterDefinition):
    """XGBRegressor, XGBRFRegressor, and XGBRanker, whose raw scores sort the samples of a query."""

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        booster = Booster(_document(model))
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
        booster = Booster(_document(model))
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
