"""Latent factors of samples, given as the solution of a small system: factor analysis, sparse PCA."""

from typing import Any

import numpy as np

from ..losses import RowObjective
from .base import ModelDefinition
from .constraints.signs import Positive
from .kernels import products
from .linear_systems import LARGEST, solve_positive
from .objectives import Objective
from .scores import Scores, transformation
from .writer import ModelWriter


class FactorAnalysisDefinition(ModelDefinition):
    """FactorAnalysis: the mean of the factors, given a sample.

    With loadings W, noise variances Psi, S = I + W Psi^-1 W' and d = x - mean, it is ``z = d Psi^-1 W' S^-1``
    (Bishop, "Pattern Recognition and Machine Learning", 2006, equation 12.66). The objective is minus the
    log-likelihood, ``(log det S + log det 2 pi Psi + (d - z W) Psi^-1 (d - z W)' + z z') / 2``: the inverse
    and the determinant of ``W'W + Psi`` by the lemmas for matrices of low rank (ibid., C.7 and C.14).
    """

    def covers(self, model: Any) -> bool:
        return 0 < len(model.components_) <= LARGEST

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return Objective(RowObjective())

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        n_components, n_features = model.components_.shape
        centred = op.Sub(x, op.parameter(model, "mean_", role="intercept"))
        loadings = op.parameter(model, "components_", role="weight")
        noise = op.parameter(model, "noise_variance_", role="scale", constraint=Positive())
        scaled = op.Div(loadings, noise)
        precision = op.Add(products(op, scaled, loadings), np.eye(n_components, dtype=op.float_dtype))
        projection, pivots = solve_positive(op, precision, scaled, n_components, n_features)
        factors = products(op, centred, projection)
        missed = op.Sub(centred, op.MatMul(factors, loadings))
        squares = op.ReduceSum(op.Div(op.Mul(missed, missed), noise), [1], keepdims=1)
        squares = op.Add(squares, op.ReduceSum(op.Mul(factors, factors), [1], keepdims=1))
        determinants = op.ReduceSum(op.Log(op.Concat(*pivots, axis=0)), keepdims=0)
        determinants = op.Add(determinants, op.ReduceSum(op.Log(op.Mul(noise, 2 * np.pi)), keepdims=0))
        score = op.Mul(op.Add(squares, determinants), 0.5)
        outputs = {"transformed": factors, "likelihood": op.Neg(score)}
        return Scores("unsupervised", score, 1, averaged=True, **outputs)


class SparsePCADefinition(ModelDefinition):
    """SparsePCA and MiniBatchSparsePCA: a ridge regression on the components C.

    ``(x - mean_) C' (C C' + ridge_alpha I)^-1`` (Hoerl and Kennard, "Ridge regression", Technometrics 12,
    1970).
    """

    def covers(self, model: Any) -> bool:
        return model.ridge_alpha > 0 and len(model.components_) <= LARGEST

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        n_components, n_features = model.components_.shape
        centred = op.Sub(x, op.parameter(model, "mean_", role="intercept"))
        components = op.parameter(model, "components_", role="weight")
        ridge = model.ridge_alpha * np.eye(n_components)
        matrix = op.Add(products(op, components, components), ridge.astype(op.float_dtype))
        projection, _ = solve_positive(op, matrix, components, n_components, n_features)
        return transformation(op, products(op, centred, projection), n_components)
