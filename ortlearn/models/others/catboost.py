"""CatBoost: sums of the values of the leaves of symmetric trees, on features that are numbers.

The splits are read from the JSON that ``save_model`` writes ("Model export as JSON" of its documentation).
Leaves, scale and bias are read and set by ``get_leaf_values``, ``set_leaf_values``, ``get_scale_and_bias``
and ``set_scale_and_bias``.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...losses import (
    AbsoluteErrorLoss,
    BaseLoss,
    HuberLoss,
    LogLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredErrorLoss,
    TweedieLoss,
)
from .. import Access, ModelDefinition, ModelWriter, Objective, Scores
from ..forms import AsIs, Scaled
from ..scores import binary_classes, class_scores, decisions, indicator, regression
from ..trees import Nodes, leaf_numbers, leaf_sums
from .splits import boosting_objective

#: Losses by their names in CatBoost, from their options.
LOSSES: dict[str, Callable[[dict[str, float]], BaseLoss]] = {
    "Huber": lambda options: HuberLoss(options["delta"]),
    "Logloss": lambda options: LogLoss(),
    "MAE": lambda options: AbsoluteErrorLoss(),
    "MultiClass": lambda options: LogLoss(),
    "MultiClassOneVsAll": lambda options: LogLoss(),
    "MultiLogloss": lambda options: LogLoss(),
    "MultiRMSE": lambda options: SquaredErrorLoss(),
    "Poisson": lambda options: PoissonLoss(),
    "Quantile": lambda options: QuantileLoss(options.get("alpha", 0.5)),
    "RMSE": lambda options: SquaredErrorLoss(),
    "Tweedie": lambda options: TweedieLoss(options["variance_power"]),
}
#: Losses of regressors that none of ours is; scores are predictions.
WITHOUT_LOSS = {"Expectile", "LogCosh", "Lq", "MAPE", "MultiQuantile"}
OF_CLASSES = {"Logloss", "MultiClass", "MultiClassOneVsAll", "MultiLogloss"}
#: Parameters that give classes weights.
CLASS_WEIGHTS = ("auto_class_weights", "class_weights", "scale_pos_weight")


def _document(model: Any) -> dict[str, Any]:
    """Return a model as JSON has it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        return json.loads(path.read_text(encoding="utf-8"))


def _loss_of(model: Any) -> tuple[str, dict[str, float]]:
    """Return the name of the loss and its options, of ``"Quantile:alpha=0.7"``."""
    name, _, text = str(model.get_all_params()["loss_function"]).partition(":")
    if name == "MultiQuantile":  # several numbers, and no loss of ours
        return name, {}
    pairs = [option.partition("=") for option in text.split(";") if option]
    return name, {key: float(value) for key, _, value in pairs}


class LeafValues(Access):
    """Values of the leaves, of shape (n_leaves, n_scores)."""

    def __init__(self, n_scores: int, n_features: int):
        self.n_scores, self.n_features = n_scores, n_features

    def read(self, owner: Any) -> np.ndarray:
        return np.reshape(owner.get_leaf_values(), (-1, self.n_scores))

    def write(self, owner: Any, value: np.ndarray) -> None:
        # a copy shares its leaves with the buffer it was read from until it is shrunk
        owner.shrink(ntree_start=0, ntree_end=owner.tree_count_)
        owner.set_leaf_values(value.ravel())
        # and it has forgotten the number of its features
        owner._n_features_in = self.n_features


class Bias(Access):
    """What is added to the sums of leaves, of shape (n_scores,)."""

    def __init__(self, n_scores: int):
        self.n_scores = n_scores

    def read(self, owner: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(owner.get_scale_and_bias()[1], np.float64), self.n_scores).copy()

    def write(self, owner: Any, value: np.ndarray) -> None:
        bias = value.tolist() if self.n_scores > 1 else float(value[0])
        owner.set_scale_and_bias(owner.get_scale_and_bias()[0], bias)


class BoosterDefinition(ModelDefinition):
    """What both classes share: sums of the values of leaves, and the objective."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        (name, options), given, params = _loss_of(model), model.get_params(), model.get_all_params()
        weighs_classes = any(given.get(key) not in (None, "None") for key in CLASS_WEIGHTS)
        if name not in LOSSES or weighs_classes:
            return None
        l2, rate = float(params.get("l2_leaf_reg", 0)), float(params["learning_rate"])
        return boosting_objective(LOSSES[name](options), 0.0, l2, rate, total_weight)

    def raw_scores(self, op: ModelWriter, model: Any, x: str) -> tuple[str, int]:
        """Append raw scores, of shape (n, n_scores), and return n_scores."""
        document = _document(model)
        features = document["features_info"]
        if set(features) != {"float_features"}:
            raise op.fail(
                model,
                "it has features that are not numbers: encode them before it, by an encoder in a pipeline.",
            )
        if "oblivious_trees" not in document:
            raise op.fail(
                model,
                "CatBoost sets the leaves of symmetric trees only: fit it with grow_policy='SymmetricTree'.",
            )
        trees, columns = document["oblivious_trees"], features["float_features"]
        n_scores = len(np.atleast_1d(document["scale_and_bias"][1]))
        scale = float(model.get_scale_and_bias()[0])
        table = op.parameter(
            model,
            "leaf_values",
            form=AsIs() if scale == 1 else Scaled(scale),
            role="table",
            name="leaf_values",
            access=LeafValues(n_scores, len(columns)),
        )
        bias = op.parameter(model, "bias", role="intercept", name="base_values", access=Bias(n_scores))
        nodes = Nodes.joined([_nodes(tree, columns) for tree in trees])
        numbers = leaf_numbers(op, nodes, x, len(columns))
        return leaf_sums(op, table, numbers, first=bias), n_scores


def _nodes(tree: dict[str, Any], columns: list[dict[str, Any]]) -> Nodes:
    """Return a symmetric tree as arrays: all nodes of a level compare the same.

    Bit i of the number of a leaf says whether a feature is above border i: the last one is the root.
    """
    splits = list(reversed(tree["splits"] or []))
    levels = np.repeat(np.arange(len(splits)), 2 ** np.arange(len(splits)))
    borders = np.array([split["border"] for split in splits], dtype=np.float32)
    own = [columns[split["float_feature_index"]] for split in splits]
    features = np.array([column["flat_feature_index"] for column in own], dtype=np.int64)
    low = np.array([column["nan_value_treatment"] != "AsTrue" for column in own], dtype=bool)
    first = 2 * np.arange(len(levels)) + 1
    return Nodes.of_splits(first, first + 1, features[levels], borders[levels], low[levels])


class CatBoostRegressorDefinition(BoosterDefinition):
    """CatBoostRegressor."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        name, options = _loss_of(model)
        if name not in WITHOUT_LOSS and name not in LOSSES or name in OF_CLASSES:
            raise op.fail(
                model, f"its loss {name!r} has no form here: fit it with another one, such as 'RMSE'."
            )
        raw, n_scores = self.raw_scores(op, model, x)
        link = LOSSES[name](options).link if name in LOSSES else "identity"
        return regression(op, raw, n_scores, link)


class CatBoostClassifierDefinition(BoosterDefinition):
    """CatBoostClassifier: two classes, several, each against the others, or several labels at once."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        name, classes = _loss_of(model)[0], np.asarray(model.classes_)
        if name not in OF_CLASSES:
            raise op.fail(
                model, f"its loss {name!r} has no form here: fit it with 'Logloss' or 'MultiClass'."
            )
        if name == "Logloss" and model.get_probability_threshold() != 0.5:
            raise op.fail(model, "its threshold is not 0.5: wrap it in a FixedThresholdClassifier instead.")
        raw, n_scores = self.raw_scores(op, model, x)
        if name == "Logloss":
            return binary_classes(op, raw, classes)
        if name == "MultiClass":
            return class_scores(op, raw, classes)
        if name == "MultiLogloss":
            return indicator(op, raw, np.arange(n_scores), probabilities=op.Sigmoid(raw))
        return decisions(op, raw, classes, probabilities=op.Sigmoid(raw))
