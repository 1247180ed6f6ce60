"""AdaBoost: the weighted median of regressors, the weighted votes of classifiers."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from ..base import ModelDefinition
from ..constraints.signs import Positive
from ..ensembles import predicted_classes, probabilities_of, write_members
from ..forms import Kept
from ..scores import Scores, binary_classes, class_scores, classes_of_probabilities, label_of, regression
from ..writer import ModelWriter


class AdaBoostRegressorDefinition(ModelDefinition):
    """AdaBoostRegressor: the prediction of the weighted median member, which receives the gradient."""

    def children(self, model: Any) -> Iterator[Any]:
        yield from model.estimators_

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        columns = [member.predicted for member in write_members(op, model, x)]
        if len(columns) == 1:
            return regression(op, columns[0])
        values = op.Concat(*columns, axis=1)
        reason = "it says which member is the median, and no gradient passes"
        weights = op.parameter(model, "estimator_weights_", reason=reason)
        _, order = op.TopK(values, [len(columns)], axis=1, largest=0, n_outputs=2)
        sums = op.CumSum(op.Gather(weights, order, axis=0), 1)
        half = op.Mul(op.Gather(sums, [len(columns) - 1], axis=1), 0.5)
        reached = op.Cast(op.GreaterOrEqual(sums, half), to=TensorProto.INT32)
        median = op.GatherElements(order, op.ArgMax(reached, axis=1, keepdims=1), axis=1)
        return regression(op, op.GatherElements(values, median, axis=1))


class AdaBoostClassifierDefinition(ModelDefinition):
    """AdaBoostClassifier, trained on member probabilities in the place of votes, which have no gradient."""

    # Zhu, Zou, Rosset and Hastie, "Multi-class AdaBoost", Statistics and Its Interface 2, 2009 (SAMME)

    def children(self, model: Any) -> Iterator[Any]:
        yield from model.estimators_

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        classes, count = model.classes_, len(model.estimators_)
        k = len(classes)
        if k == 1:  # votes of a single class come to nothing
            one = op.repeated_row(x, op.constant([1.0]))
            return classes_of_probabilities(op, one, classes, decision=op.Sub(one, 1.0))
        # zeros are left over if the fit ended early
        used = Kept(np.arange(len(model.estimator_weights_)) < count)
        weights = op.parameter(model, "estimator_weights_", form=used, constraint=Positive())
        total = op.ReduceSum(weights, [0], keepdims=1)
        hard: list[str] = []
        soft: list[str] = []
        for number, member in enumerate(write_members(op, model, x)):
            shares = probabilities_of(op, member)
            weight = op.Div(op.Gather(weights, [number], axis=0), total)
            hard.append(_votes(op, predicted_classes(op, member), weight, k))
            soft.append(_votes(op, shares, weight, k))
        decision, score = op.Sum(*hard), op.Sum(*soft)
        if k > 2:
            scores = class_scores(op, op.Div(score, k - 1.0), classes)
            shares = op.Softmax(op.Div(decision, k - 1.0), axis=1)
        else:
            decision, score = op.difference(decision), op.difference(score)
            scores = binary_classes(op, score, classes)
            shares = op.binary_probabilities(op.Sigmoid(decision))
        label = label_of(op, op.ArgMax(shares, axis=1, keepdims=0), classes)
        return replace(scores, label=label, probabilities=shares, decision=decision)


def _votes(op: ModelWriter, shares: str, weight: str, n_classes: int) -> str:
    """Append a member's votes: 1 for a share of 1, ``-1 / (k - 1)`` for a share of 0."""
    rest = n_classes - 1
    return op.Mul(op.Sub(op.Mul(shares, n_classes / rest), 1.0 / rest), weight)
