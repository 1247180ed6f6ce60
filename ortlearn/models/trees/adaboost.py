"""AdaBoostRegressor: the weighted median of its members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnx import TensorProto

from ..base import ModelDefinition
from ..scores import Scores, regression
from ..writer import ModelWriter
from .routing import share_leaf_numbers

__all__ = ["AdaBoostRegressorDefinition"]


class AdaBoostRegressorDefinition(ModelDefinition):
    """AdaBoostRegressor.

    The prediction is that of one member, which gets the gradient; weights only say which one it is.
    """

    def children(self, model: Any) -> Iterator[Any]:
        """Yield the members."""
        yield from model.estimators_

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the weighted median."""
        share_leaf_numbers(op, model.estimators_, x, model.n_features_in_)
        columns = [
            op.write(member, x, at=f"estimators_[{number}]").predicted
            for number, member in enumerate(model.estimators_)
        ]
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
