"""HistGradientBoosting estimators: their trees, splits on categories included."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto
from sklearn.base import is_classifier

from ...models.trees.routing import rounded_like_rows
from .categories import Categories
from .tree_attributes import label_attributes, leaf_attributes, routing_attributes
from .writing import add_nodes, is_double, new_builder, write_output

__all__ = ["convert"]


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Write gradient boosting on histograms.

    skl2onnx hands Python booleans where ONNX has integers, which newer versions of protobuf refuse,
    takes splits on categories for others, and forgets the exponential that ends Poisson and gamma
    regression.
    """
    model, op = operator.raw_operator, new_builder(scope)
    categories = Categories(model)
    rounds = model._predictors
    predictors = [predictor for round_ in rounds for predictor in round_]
    trees = [categories.nodes_of(predictor) for predictor in predictors]
    values = [_leaf_values(predictor) for predictor in predictors]
    outputs = [np.array([k]) for round_ in rounds for k in range(len(round_))]
    double = is_double(operator.inputs[0])
    x = operator.inputs[0].full_name
    attributes = {
        **routing_attributes(trees, double, rounded_like_rows),
        "base_values": np.ravel(model._baseline_prediction).astype(np.float32).tolist(),
        "domain": "ai.onnx.ml",
    }
    if not (double or operator.inputs[0].type.__class__.__name__ == "FloatTensorType"):
        x = op.Cast(x, to=TensorProto.FLOAT)
    if is_classifier(model):
        leaves = leaf_attributes(trees, values, outputs, "class")
        link = _link_of_classes(container, model)
        label, scores = op.node(
            "TreeEnsembleClassifier",
            x,
            n_outputs=2,
            post_transform=link,
            **leaves,
            **attributes,
            **label_attributes(model.classes_),
        )
        op.node("Identity", label, outputs=[operator.outputs[0].full_name])
        write_output(op, scores, operator.outputs[1])
    else:
        leaves = leaf_attributes(trees, values, outputs)
        raw = op.node("TreeEnsembleRegressor", x, n_targets=1, **leaves, **attributes)
        exponential = type(model._loss.link).__name__ == "LogLink"
        write_output(op, op.Exp(raw) if exponential else raw, operator.outputs[0])
    add_nodes(container, op)


def _leaf_values(predictor: Any) -> np.ndarray:
    nodes = predictor.nodes
    return nodes["value"][nodes["is_leaf"] == 1][:, None]


def _link_of_classes(container: Any, model: Any) -> str:
    if container.get_options(model, {"raw_scores": False})["raw_scores"]:
        return "NONE"
    return "LOGISTIC" if model.n_trees_per_iteration_ == 1 else "SOFTMAX"
