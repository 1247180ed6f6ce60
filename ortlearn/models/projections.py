"""Projections: PCA and its relatives, kernel PCA, partial least squares."""

from dataclasses import replace
from typing import Any

import numpy as np

from .base import ModelDefinition
from .constraints.signs import Positive
from .distances import pairwise_distances
from .forms import Reshaped, Scaled, Transposed
from .kernels import polynomial, products, sigmoid, unit_rows
from .scores import Scores, regression, transformation
from .writer import ModelWriter


class LinearProjectionDefinition(ModelDefinition):
    """``(x - mean_) @ components_.T``, without the mean where the projection has none."""

    def covers(self, model: Any) -> bool:
        return isinstance(model.components_, np.ndarray)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        if getattr(model, "mean_", None) is not None:
            x = op.Sub(x, op.parameter(model, "mean_", form=Reshaped((-1,)), role="intercept"))
        components = op.parameter(model, "components_", form=Transposed(), role="weight")
        return transformation(op, op.MatMul(x, components), len(model.components_))

    def finish(self, model: Any) -> None:
        for attribute in ("mixing_", "inverse_components_"):
            if hasattr(model, attribute):
                setattr(model, attribute, np.linalg.pinv(model.components_))


class PCADefinition(LinearProjectionDefinition):
    """PCA and IncrementalPCA: components of variance one where they whiten."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        scores = super().write(op, model, x)
        if not model.whiten:
            return scores
        variance = op.parameter(model, "explained_variance_", role="scale", constraint=Positive())
        least = float(np.finfo(model.explained_variance_.dtype).eps)
        deviation = op.Sqrt(variance)
        if model.explained_variance_.min() < least**2:
            deviation = op.Max(deviation, least)
        return transformation(op, op.Div(scores.score, deviation), scores.n_outputs)


class FactorAnalysisDefinition(ModelDefinition):
    """FactorAnalysis: the mean of the factors, given a sample.

    With loadings W and noise variances p, it is ``(x - mean_) W'/p (I + W/p W')^-1`` (Bishop, "Pattern
    Recognition and Machine Learning", 2006, equation 12.66). ONNX has no inverse of matrices, which is
    why the loadings are not trained.
    """

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        x = op.Sub(x, op.parameter(model, "mean_", role="intercept"))
        scaled = model.components_ / model.noise_variance_
        precision = np.eye(len(scaled)) + scaled @ model.components_.T
        factors = np.linalg.solve(precision.T, scaled).T
        return transformation(op, op.MatMul(x, factors.astype(op.float_dtype)), len(scaled))


class KernelPCADefinition(ModelDefinition):
    """KernelPCA: the centred kernel of a sample with those of the fit, projected.

    With a kernel k, rows f_i and eigenvectors a, it is ``(k(x, f_i) - mean_j k(x, f_j) - K_fit_rows_i +
    K_fit_all) a / sqrt(eigenvalues)`` (Schölkopf, Smola and Müller, "Nonlinear component analysis as a
    kernel eigenvalue problem", Neural Computation 10, 1998).
    """

    def covers(self, model: Any) -> bool:
        known = model.kernel in ("cosine", "linear", "poly", "rbf", "sigmoid")
        return known and isinstance(model.X_fit_, np.ndarray)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        rows = op.parameter(model, "X_fit_", role="intercept" if model.kernel == "rbf" else "weight")
        kernel = _kernel(op, model, x, rows)
        centred = op.Sub(kernel, op.ReduceMean(kernel, [1], keepdims=1))
        centred = op.Sub(centred, op.parameter(model, "_centerer.K_fit_rows_", role="intercept"))
        centred = op.Add(centred, op.parameter(model, "_centerer.K_fit_all_", role="intercept"))
        known = model.eigenvalues_ != 0
        form = Scaled(1 / np.sqrt(np.where(known, model.eigenvalues_, 1)), "{} / sqrt(eigenvalues_)")
        result = op.MatMul(centred, op.parameter(model, "eigenvectors_", form=form, role="weight"))
        if not known.all():
            result = op.Mul(result, known.astype(op.float_dtype))
        return transformation(op, result, len(model.eigenvalues_))


def _kernel(op: ModelWriter, model: Any, x: str, rows: str) -> str:
    if model.kernel == "cosine":
        return products(op, unit_rows(op, x), unit_rows(op, rows))
    gamma = float(model.gamma_)
    if model.kernel == "rbf":
        return op.Exp(op.Mul(pairwise_distances(op, x, rows, "sqeuclidean"), -gamma))
    if model.kernel == "linear":
        return products(op, x, rows)
    if model.kernel == "sigmoid":
        return sigmoid(op, x, rows, gamma, float(model.coef0))
    return polynomial(op, x, rows, gamma, float(model.coef0), float(model.degree))


class PLSRegressionDefinition(ModelDefinition):
    """PLSRegression: ``(x - _x_mean) @ coef_.T + intercept_``; it transforms by its rotations."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        centred = op.Sub(x, op.parameter(model, "_x_mean", role="intercept"))
        coef = op.parameter(model, "coef_", form=Transposed(), role="weight")
        intercept = op.parameter(model, "intercept_", form=Reshaped((-1,)), role="intercept")
        predicted = op.Add(op.MatMul(centred, coef), intercept)
        reason = "transform uses it, predict does not"
        deviations = op.parameter(model, "_x_std", role="scale", constraint=Positive(), reason=reason)
        rotations = op.parameter(model, "x_rotations_", role="weight", reason=reason)
        transformed = op.MatMul(op.Div(centred, deviations), rotations)
        return replace(regression(op, predicted, len(model.coef_)), transformed=transformed)

    def shape_predictions(self, model: Any, n_dimensions: int) -> None:
        model._predict_1d = n_dimensions == 1
