"""CatBoost: sums of the values of the leaves of symmetric trees, on numeric features."""

# Splits are read from the JSON of save_model ("Model export as JSON" of its documentation), leaves, scale and
# bias by get_leaf_values and get_scale_and_bias.

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ... import losses
from ...boosting.packages import grows_catboost, shift_catboost
from .. import Access, ModelWriter, Objective, Scores
from ..capabilities import BoostedStages
from ..forms import AsIs, Scaled
from ..trees import Nodes, leaf_numbers, leaf_sums
from .boosters import CLASSIFIERS, Booster, Kind, boosting_objective

CUSTOM = "PythonUserDefinedPerObject"  # loss of a model that was fitted with an object as its loss
CLASS_WEIGHTS = ("auto_class_weights", "class_weights", "scale_pos_weight")  # parameters


def _document(model: Any) -> dict[str, Any]:
    """Return the JSON of a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        return json.loads(path.read_text(encoding="utf-8"))


def _loss_of(text: Any) -> tuple[str, dict[str, float]]:
    """Return the name of the loss and its options, of ``"Quantile:alpha=0.7"``."""
    name, _, text = str(text).partition(":")
    if name == "MultiQuantile":  # several outputs, without a corresponding loss
        return name, {}
    pairs = [option.partition("=") for option in text.split(";") if option]
    return name, {key: float(value) for key, _, value in pairs}


@dataclass(frozen=True)
class CatBoostLeaves(Access):
    """Values of the leaves, of shape (n_leaves, n_scores)."""

    n_scores: int
    n_features: int

    def read(self, owner: Any) -> np.ndarray:
        return np.reshape(owner.get_leaf_values(), (-1, self.n_scores))

    def write(self, owner: Any, value: np.ndarray) -> None:
        # a copy shares its leaves with the buffer it was read from until it is shrunk
        owner.shrink(ntree_start=0, ntree_end=owner.tree_count_)
        owner.set_leaf_values(value.ravel())
        owner._n_features_in = self.n_features  # a copy loses it


@dataclass(frozen=True)
class CatBoostBias(Access):
    """Bias of the sums of leaves, of shape (n_scores,)."""

    n_scores: int

    def read(self, owner: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(owner.get_scale_and_bias()[1], np.float64), self.n_scores).copy()

    def write(self, owner: Any, value: np.ndarray) -> None:
        bias = value.tolist() if self.n_scores > 1 else float(value[0])
        owner.set_scale_and_bias(owner.get_scale_and_bias()[0], bias)


class CatBoostDefinition(Booster):
    """CatBoostRegressor and CatBoostClassifier: binary, multiclass, one-vs-all or multilabel."""

    defaults = "RMSE", "Logloss"
    supported = "another objective, such as 'RMSE'", "'Logloss' or 'MultiClass'"
    kinds = {
        **{name: Kind() for name in ("Expectile", "LogCosh", "Lq", "MAPE", "MultiQuantile", CUSTOM)},
        "Huber": Kind(lambda options: losses.HuberLoss(options["delta"])),
        "Logloss": Kind(lambda options: losses.LogLoss(), "logit"),
        "MAE": Kind(lambda options: losses.AbsoluteErrorLoss()),
        "MultiClass": Kind(lambda options: losses.LogLoss(), "softmax"),
        "MultiClassOneVsAll": Kind(lambda options: losses.LogLoss(), "logits"),
        "MultiLogloss": Kind(lambda options: losses.LogLoss(), "labels"),
        **{name: Kind(lambda options: losses.SquaredErrorLoss()) for name in ("MultiRMSE", "RMSE")},
        "Poisson": Kind(lambda options: losses.PoissonLoss()),
        "Quantile": Kind(lambda options: losses.QuantileLoss(options.get("alpha", 0.5))),
        "Tweedie": Kind(lambda options: losses.TweedieLoss(options["variance_power"])),
    }

    @property
    def capabilities(self) -> Any:  # type: ignore[override]
        """Stages of boosting."""

        def own_loss(model: Any) -> losses.BaseLoss | None:
            given = model.get_params()
            return self.own_loss(model, *_loss_of(given.get("objective") or given.get("loss_function") or ""))

        return (BoostedStages(grows_catboost, own_loss, _own_scores, shift_catboost),)

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        given, params = model.get_params(), model.get_all_params()
        name, options = _loss_of(params["loss_function"])
        loss = self.kinds.get(name, Kind()).loss
        if loss is None or any(given.get(key) not in (None, "None") for key in CLASS_WEIGHTS):
            return None
        l2, rate = float(params.get("l2_leaf_reg", 0)), float(params["learning_rate"])
        return boosting_objective(loss(options), 0.0, l2, rate, total_weight)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        name, options = _loss_of(model.get_all_params()["loss_function"])
        kind = self.kind_of(op, model, name)
        if kind.output == "logit" and model.get_probability_threshold() != 0.5:
            raise op.fail(model, "its threshold is not 0.5: wrap it in a FixedThresholdClassifier instead.")
        raw, n_scores = _raw_scores(op, model, x)
        if kind.output not in CLASSIFIERS:
            return self.regression_scores(op, kind, raw, options, n_scores)
        classes = range(n_scores) if name == "MultiLogloss" else np.asarray(model.classes_)
        return CLASSIFIERS[kind.output](op, raw, classes)


def _own_scores(model: Any, X: Any) -> np.ndarray:
    return model.predict(X, prediction_type="RawFormulaVal")


def _raw_scores(op: ModelWriter, model: Any, x: str) -> tuple[str, int]:
    """Append raw scores, of shape (n, n_scores), and return n_scores."""
    document = _document(model)
    features = document["features_info"]
    if set(features) != {"float_features"}:
        raise op.fail(model, "it has features that are not numeric: encode them by an encoder in a pipeline.")
    if "oblivious_trees" not in document:
        reason = "CatBoost sets the leaves of symmetric trees only: fit it with grow_policy='SymmetricTree'."
        raise op.fail(model, reason)
    trees, columns = document["oblivious_trees"], features["float_features"]
    n_scores = len(np.atleast_1d(document["scale_and_bias"][1]))
    scale, stem = float(model.get_scale_and_bias()[0]), "leaf_values"
    options: Any = {"form": AsIs() if scale == 1 else Scaled(scale), "role": "table", "name": stem}
    table = op.parameter(model, stem, **options, access=CatBoostLeaves(n_scores, len(columns)))
    bias = op.parameter(model, "bias", role="intercept", name="base_values", access=CatBoostBias(n_scores))
    nodes = Nodes.joined([_nodes(tree, columns) for tree in trees])
    numbers = leaf_numbers(op, nodes, x, len(columns))
    return leaf_sums(op, table, numbers, first=bias), n_scores


def _nodes(tree: dict[str, Any], columns: list[dict[str, Any]]) -> Nodes:
    """Return a symmetric tree as arrays: all nodes of a level have the same split."""
    # bit i of the number of a leaf says whether a feature is above border i; the last one is the root
    splits = list(reversed(tree["splits"] or []))
    levels = np.repeat(np.arange(len(splits)), 2 ** np.arange(len(splits)))
    borders = np.array([split["border"] for split in splits], dtype=np.float32)
    own = [columns[split["float_feature_index"]] for split in splits]
    features = np.array([column["flat_feature_index"] for column in own], dtype=np.int64)
    low = np.array([column["nan_value_treatment"] != "AsTrue" for column in own], dtype=bool)
    first = 2 * np.arange(len(levels)) + 1
    return Nodes.of_splits(first, first + 1, features[levels], borders[levels], low[levels])
