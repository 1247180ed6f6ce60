"""Members: trained or given models whose outputs intervals are computed from."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from .. import conversion
from ..estimators import OrtGradientOptimizer
from ..estimators.base import BaseOrtGradientEstimator
from ..exceptions import ConversionError
from ..fitting.fitted_model import FittedModel
from ..fitting.start import new_start
from ..graphs.view import GraphView
from ..problem.samples import Samples

__all__ = ["Member", "as_member", "is_given", "last_features", "new_optimizer", "template"]


@dataclass(frozen=True)
class Member:
    """A fitted estimator, and what it reads and gives.

    It reads "X", the "prediction" of the first member, or "both" as columns. It gives its predictions, or
    the tensor ``tensor`` of its graph.
    """

    estimator: BaseOrtGradientEstimator
    reads: str = "X"
    tensor: str = ""

    def features(self, X: Any, prediction: np.ndarray | None) -> Any:
        """Return what the estimator reads."""
        if self.reads == "X":
            return X
        column = np.asarray(prediction).reshape(-1, 1)
        return column if self.reads == "prediction" else np.hstack([column, np.asarray(X, column.dtype)])

    def output(self, X: Any, prediction: np.ndarray | None) -> np.ndarray:
        """Return the output, of shape (n, k), in the type of the graph."""
        model, features = self.estimator._model(), self.features(X, prediction)
        if self.tensor:
            rows = model.read(features)
            if self.tensor != model.problem.trainable.input_name:
                return model.runner._run(self.tensor, rows)
            return rows.toarray() if issparse(rows) else rows
        found = np.asarray(self.estimator.predict(features), model.problem.dtype)
        return found.reshape(len(found), -1)


def template(estimator: Any) -> Any:
    """Return the model of an optimizer, or the model itself."""
    return estimator.estimator if isinstance(estimator, BaseOrtGradientEstimator) else estimator


def is_given(estimator: Any) -> bool:
    """Return whether a model is fitted or an ONNX file, so that its predictions must not change."""
    if isinstance(estimator, BaseOrtGradientEstimator):
        return estimator.__sklearn_is_fitted__()
    return conversion.is_onnx_source(estimator) or conversion.is_fitted(estimator)


def new_optimizer(estimator: Any, seed: int, **changed: Any) -> BaseOrtGradientEstimator:
    """Return an unfitted optimizer for an estimator, or a copy of an optimizer, with changed parameters."""
    if not isinstance(estimator, BaseOrtGradientEstimator):
        return OrtGradientOptimizer(clone(estimator), random_state=seed, **changed)
    if estimator.random_state is None:
        changed["random_state"] = seed
    return clone(estimator).set_params(**changed)


def as_member(estimator: Any, X: Any, y: Any, **parameters: Any) -> Member:
    """Return a given model as a member, without training it."""
    if isinstance(estimator, BaseOrtGradientEstimator):
        return Member(copy.deepcopy(estimator))
    optimizer = OrtGradientOptimizer(estimator, warm_start=True, random_state=0, **parameters)
    start = new_start(optimizer._configuration(), Samples(X, y), check_random_state(0), 0)
    state = replace(start.state, start_kept=True)
    optimizer._fitted = FittedModel(start.problem, start.features, state)
    return Member(optimizer)


def last_features(estimator: BaseOrtGradientEstimator) -> str:
    """Return the tensor that the last layer multiplies with its weights.

    It holds the gradients of the predictions of single samples by these weights, if the layer is linear.
    """
    graph = estimator._model().problem.task(False).graph
    view = GraphView(graph.model)
    node = view.producer(graph.output, passing=("Identity", "Reshape"))
    while node is not None and node.op_type == "Add":
        others = [name for name in node.input if name not in graph.intercepts]
        node = view.producer(others[0], passing=("Identity", "Reshape")) if len(others) == 1 else None
    if node is None or node.op_type not in ("MatMul", "Gemm") or node.input[1] not in graph.intercepts:
        raise ConversionError(
            "method='laplace' takes a model that ends with a linear layer with trained weights, such as a "
            "linear model or a network: use another method."
        )
    return node.input[0]
