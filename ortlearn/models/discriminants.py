"""Discriminant analysis: classes with normal densities, of one covariance or one each."""

from typing import Any

from .base import ModelDefinition
from .constraints.sets import Simplex
from .constraints.signs import Positive
from .linear import linear_scores
from .scores import Scores, binary_classes, class_scores, difference
from .writer import ModelWriter


class LinearDiscriminantDefinition(ModelDefinition):
    """LinearDiscriminantAnalysis: linear decisions; as a step, the coordinates that tell classes apart."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        score, transformed = linear_scores(op, model, x), self._transformed(op, model, x)
        finish = binary_classes if len(model.classes_) == 2 else class_scores
        return finish(op, score, model.classes_, transformed=transformed)

    def _transformed(self, op: ModelWriter, model: Any, x: str) -> str | None:
        if model.solver == "lsqr":
            return None
        if model.solver == "svd":
            x = op.Sub(x, op.parameter(model, "xbar_", role="intercept"))
        product = op.MatMul(x, op.parameter(model, "scalings_", role="weight"))
        n_columns = model.scalings_.shape[1]
        return op.columns(product, range(min(model._max_components, n_columns)), n_columns)


class QuadraticDiscriminantDefinition(ModelDefinition):
    """QuadraticDiscriminantAnalysis: ``log p_k - sum_j (log s_kj + ((x - m_k) R_k)_j^2 / s_kj) / 2``."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        terms = [self._term(op, model, x, number) for number in range(len(model.classes_))]
        priors = op.parameter(model, "priors_", role="intercept", constraint=Simplex())
        score = op.Add(op.Mul(op.Concat(*terms, axis=1), -0.5), op.Log(priors))
        decision = difference(op, score) if len(terms) == 2 else None
        return class_scores(op, score, model.classes_, decision=decision)

    def _term(self, op: ModelWriter, model: Any, x: str, number: int) -> str:
        """Append the sum over axes of a class, of shape (n, 1)."""
        mean = op.parameter(model, "means_", index=number, role="intercept")
        rotation = op.parameter(model, "rotations_", index=number, role="weight")
        scaling = op.parameter(model, "scalings_", index=number, role="scale", constraint=Positive())
        rotated = op.MatMul(op.Sub(x, mean), rotation)
        squares = op.Div(op.Mul(rotated, rotated), scaling)
        return op.ReduceSum(op.Add(squares, op.Log(scaling)), [1], keepdims=1)
