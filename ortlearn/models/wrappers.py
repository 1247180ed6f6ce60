"""Meta-estimators that predict with one inner estimator."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from .base import ModelDefinition, Route
from .registry import definition_of, inner_part
from .scores import Scores, label_of
from .writer import ModelWriter


def _inside(model: Any) -> tuple[str, Any]:
    """Return attribute and inner estimator."""
    return inner_part(model) or ("", model)


class InnerDefinition(ModelDefinition):
    """Meta-estimators that compute what their inner estimator does."""

    takes_columns = True
    inner: Sequence[str] = ("estimator_",)

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        yield Route(_inside(model)[1], columns)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        # at the top, parameters keep the names of the inner estimator
        attribute, estimator = _inside(model)
        return op.write(estimator, x, attribute if op.path else "")

    def fitted_part(self, model: Any) -> Any:
        return _inside(model)[1]

    def shape_predictions(self, model: Any, n_dimensions: int) -> Any:
        return _inside(model)[1]


class SelfTrainingDefinition(InnerDefinition):
    """SelfTrainingClassifier."""

    unlabelled = -1


class ConsensusDefinition(InnerDefinition):
    """RANSACRegressor, without an objective, as its fit drops samples."""

    def fitted_part(self, model: Any) -> Any:
        return model


class SearchDefinition(InnerDefinition):
    """Searches over hyper-parameters that refit the best estimator."""

    inner = ("best_estimator_",)


class FrozenDefinition(InnerDefinition):
    """FrozenEstimator: not trained by default, unless it is the whole model."""

    inner = ("estimator",)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        with op.inside(reason="it is part of a FrozenEstimator" if op.path else ""):
            return super().write(op, model, x)


class ThresholdDefinition(InnerDefinition):
    """FixedThresholdClassifier and TunedThresholdClassifierCV: binary decisions by a threshold."""

    inner = ("estimator_", "estimator")

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        scores = super().write(op, model, x)
        method, has_shares = model.response_method, hasattr(_inside(model)[1], "predict_proba")
        of_probability = method == "predict_proba" or (method == "auto" and has_shares)
        # by default, the positive class is the second one
        positive = getattr(model, "pos_label", None)
        number = 1 if positive is None else int(np.flatnonzero(scores.classes == positive)[0])
        value = _class_response(op, scores, number, of_probability)
        threshold = getattr(model, "best_threshold_", None)
        threshold = model.threshold if threshold is None else threshold
        if threshold == "auto":
            threshold = 0.5 if of_probability else 0.0
        above = op.Cast(op.GreaterOrEqual(value, float(threshold)), to=TensorProto.INT64)
        classes = scores.classes if number == 1 else scores.classes[::-1]
        return replace(scores, label=label_of(op, op.Reshape(above, [-1]), classes))


def _class_response(op: ModelWriter, scores: Scores, number: int, of_probability: bool) -> str:
    """Return the probability or the decision of one of two classes, of shape (n, 1)."""
    if of_probability and isinstance(scores.probabilities, str):
        return op.Gather(scores.probabilities, [number], axis=1)
    decision = op.difference(scores.decided) if scores.n_outputs == 2 else scores.decided
    return decision if number == 1 else op.Neg(decision)


class TransformedTargetDefinition(InnerDefinition):
    """TransformedTargetRegressor: a regressor of transformed labels."""

    inner = ("regressor_",)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        scores = super().write(op, model, x).with_link(op, op.link)
        inverse = definition_of(model.transformer_).write_inverse
        prediction = inverse(op, model.transformer_, scores.predicted)
        transformers = (model.transformer_, *scores.target_transformers)
        return replace(scores, prediction=prediction, target_transformers=transformers)

    def shape_predictions(self, model: Any, n_dimensions: int) -> Any:
        model._training_dim = n_dimensions
