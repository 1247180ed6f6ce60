"""Naive Bayes classifiers: the joint log-likelihoods of samples and classes."""

from typing import Any

import numpy as np
from onnx import TensorProto

from ..base import ModelDefinition
from ..capabilities import ReplacedModel
from ..constraints.sets import LogProbability, Simplex
from ..constraints.signs import Positive
from ..forms import Logarithm, Transposed
from ..scores import Scores, class_scores
from ..writer import ModelWriter

SUM_TO_ONE = Simplex(logarithm=True)


def _log_prior(op: ModelWriter, model: Any) -> str:
    return op.parameter(model, "class_log_prior_", role="intercept", constraint=SUM_TO_ONE)


def _log_probabilities(op: ModelWriter, model: Any, **options: Any) -> str:
    """Return the log-probabilities of features given classes, of shape (n_features, n_classes)."""
    return op.parameter(model, "feature_log_prob_", form=Transposed(), **{"role": "weight", **options})


class GaussianNBDefinition(ModelDefinition):
    """GaussianNB: ``log p_k - sum_j (log(2 pi v_kj) + (x_j - m_kj)^2 / v_kj) / 2``, up to a constant."""

    capabilities = (ReplacedModel(),)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        prior = op.parameter(model, "class_prior_", form=Logarithm(), role="intercept", constraint=SUM_TO_ONE)
        variances = op.parameter(model, "var_", role="scale", constraint=Positive())
        differences = op.Sub(op.Unsqueeze(x, [1]), op.parameter(model, "theta_", role="intercept"))
        squares = op.Div(op.Mul(differences, differences), variances)
        # Subtracting the terms of the first class changes no probability, and cancels the huge terms of
        # constant columns, whose variance is near zero.
        squares = op.Sub(squares, op.Gather(squares, [0], axis=1))
        sizes = op.ReduceSum(op.Log(op.Mul(variances, 2 * np.pi)), [1], keepdims=0)
        distances = op.Add(op.ReduceSum(squares, [2], keepdims=0), sizes)
        return class_scores(op, op.Sub(prior, op.Mul(distances, 0.5)), model.classes_)


class MultinomialNBDefinition(ModelDefinition):
    """MultinomialNB: ``x @ feature_log_prob_.T + class_log_prior_``."""

    capabilities = (ReplacedModel(),)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        table = _log_probabilities(op, model, constraint=Simplex(0, logarithm=True))
        return class_scores(op, op.Add(op.MatMul(x, table), _log_prior(op, model)), model.classes_)


class ComplementNBDefinition(ModelDefinition):
    """ComplementNB: ``x @ feature_log_prob_.T``, whose weights are unconstrained."""

    capabilities = (ReplacedModel(),)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        score = op.MatMul(x, _log_probabilities(op, model))
        if len(model.classes_) == 1:
            score = op.Add(score, _log_prior(op, model))
        return class_scores(op, score, model.classes_)


class BernoulliNBDefinition(ModelDefinition):
    """BernoulliNB: ``x @ (log p - log(1 - p)).T + sum log(1 - p) + class_log_prior_``."""

    capabilities = (ReplacedModel(),)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        if model.binarize is not None:
            x = op.Where(op.Greater(x, float(model.binarize)), 1.0, 0.0)
        present = _log_probabilities(op, model, constraint=LogProbability())
        absent = op.Log(op.Sub(1.0, op.Exp(present)))
        constant = op.Add(op.ReduceSum(absent, [0], keepdims=0), _log_prior(op, model))
        score = op.Add(op.MatMul(x, op.Sub(present, absent)), constant)
        return class_scores(op, score, model.classes_)


class CategoricalNBDefinition(ModelDefinition):
    """CategoricalNB: the sum of the log-probabilities of the categories in all columns."""

    capabilities = (ReplacedModel(),)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        categories, options = op.Cast(x, to=TensorProto.INT64), {"constraint": Simplex(0, logarithm=True)}
        terms = []
        for column in range(model.n_features_in_):
            table = _log_probabilities(op, model, index=column, role="table", **options)
            # a scalar index: the result has no axis for the column
            terms.append(op.Gather(table, op.Gather(categories, np.array(column), axis=1), axis=0))
        return class_scores(op, op.Sum(*terms, _log_prior(op, model)), model.classes_)
