"""Projections: PCA, kernel PCA, partial least squares, factor analysis, sparse PCA."""

from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from ...losses import RowObjective
from ..base import ModelDefinition
from ..constraints.signs import Positive
from ..forms import Reshaped, Scaled, Transposed
from ..formulas.kernels import KernelDefinition, centred_kernel, fitted_kernel, products
from ..formulas.linear_systems import LARGEST, solve_positive
from ..scores import Scores, regression, transformation
from ..writer import ModelWriter


class LinearProjectionDefinition(ModelDefinition):
    """``(x - mean_) @ components_.T``, or ``x @ components_.T`` without an attribute ``mean_``."""

    def covers(self, model: Any) -> bool:
        return isinstance(model.components_, np.ndarray)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        if getattr(model, "mean_", None) is not None:
            x = op.Sub(x, op.parameter(model, "mean_", form=Reshaped((-1,)), role="intercept"))
        components = op.parameter(model, "components_", form=Transposed(), role="weight")
        return transformation(op, op.MatMul(x, components), len(model.components_))

    def finish(self, model: Any) -> None:
        components = model.components_
        for attribute in ("mixing_", "inverse_components_"):
            if hasattr(model, attribute):
                dense = components if isinstance(components, np.ndarray) else components.toarray()
                setattr(model, attribute, np.linalg.pinv(dense))


class SparseProjectionDefinition(LinearProjectionDefinition):
    """SparseRandomProjection: sparse components, whose zeros stay zero."""

    def covers(self, model: Any) -> bool:
        return True

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        components = model.components_
        if isinstance(components, np.ndarray):
            return super().write(op, model, x)
        coordinates = components.tocoo()
        # entries that are not stored refer to the zero appended to the values
        positions = np.full(components.shape[::-1], components.nnz)
        positions[coordinates.col, coordinates.row] = np.arange(components.nnz)
        values = op.parameter(model, "components_.data", role="table")
        padded = op.Concat(values, [0.0], axis=0)
        result = op.MatMul(x, op.Gather(padded, positions, axis=0))
        return transformation(op, result, components.shape[0])


class PCADefinition(LinearProjectionDefinition):
    """PCA and IncrementalPCA, with or without whitening."""

    def has_own_score(self, model: Any) -> bool:
        return hasattr(model, "score")  # the log-likelihood of samples, for PCA

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        scores = super().write(op, model, x)
        if not model.whiten:
            return scores
        variance = op.parameter(model, "explained_variance_", role="scale", constraint=Positive())
        least, deviation = float(np.finfo(model.explained_variance_.dtype).eps), op.Sqrt(variance)
        if model.explained_variance_.min() < least**2:
            deviation = op.Max(deviation, least)
        return transformation(op, op.Div(scores.score, deviation), scores.n_outputs)

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        scale = np.sqrt(model.explained_variance_)[:, None] if model.whiten else 1.0
        product = op.MatMul(y, (scale * model.components_).astype(op.float_dtype))
        return op.Add(product, model.mean_.astype(op.float_dtype))


class KernelPCADefinition(KernelDefinition):
    """KernelPCA: the centred kernel times ``eigenvectors_ / sqrt(eigenvalues_)`` (Schölkopf et al., 1998)."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        kernel = fitted_kernel(op, model, x, "X_fit_", float(model.gamma_), model.coef0, model.degree)
        return transformation(op, projected_kernel(op, model, kernel), len(model.eigenvalues_))


def projected_kernel(op: ModelWriter, model: Any, kernel: str, at: str = "") -> str:
    """Return a kernel centred and projected by the KernelPCA at a path such as ``"kernel_pca_."``."""
    eigenvalues = attrgetter(f"{at}eigenvalues_")(model)
    centred = centred_kernel(op, kernel, model, f"{at}_centerer.")
    is_nonzero = eigenvalues != 0
    form = Scaled(1 / np.sqrt(np.where(is_nonzero, eigenvalues, 1)), "{} / sqrt(eigenvalues_)")
    result = op.MatMul(centred, op.parameter(model, f"{at}eigenvectors_", form=form, role="weight"))
    return result if is_nonzero.all() else op.Mul(result, is_nonzero.astype(op.float_dtype))


class PLSRegressionDefinition(ModelDefinition):
    """PLSRegression, PLSCanonical and CCA: ``(x - _x_mean) @ coef_.T + intercept_``; rotations transform."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        centred = op.Sub(x, op.parameter(model, "_x_mean", role="intercept"))
        coef = op.parameter(model, "coef_", form=Transposed(), role="weight")
        intercept = op.parameter(model, "intercept_", form=Reshaped((-1,)), role="intercept")
        predicted = op.Add(op.MatMul(centred, coef), intercept)
        reason = "only transform uses it, not predict"
        deviations = op.parameter(model, "_x_std", role="scale", constraint=Positive(), reason=reason)
        rotations = op.parameter(model, "x_rotations_", role="weight", reason=reason)
        transformed = op.MatMul(op.Div(centred, deviations), rotations)
        return replace(regression(op, predicted, len(model.coef_)), transformed=transformed)

    def shape_predictions(self, model: Any, n_dimensions: int) -> None:
        model._predict_1d = n_dimensions == 1


class PLSSVDDefinition(ModelDefinition):
    """PLSSVD: ``(x - _x_mean) / _x_std @ x_weights_``."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        centred = op.Sub(x, op.parameter(model, "_x_mean", role="intercept"))
        scaled = op.Div(centred, op.parameter(model, "_x_std", role="scale", constraint=Positive()))
        weights = op.parameter(model, "x_weights_", role="weight")
        return transformation(op, op.MatMul(scaled, weights), model.x_weights_.shape[1])


class FactorAnalysisDefinition(ModelDefinition):
    """FactorAnalysis: the posterior mean of the factors; the objective is minus the log-likelihood."""

    # With loadings W, noise variances Psi, S = I + W Psi^-1 W' and d = x - mean, factors are
    # z = d Psi^-1 W' S^-1 (Bishop, "Pattern Recognition and Machine Learning", 2006, equation 12.66), and the
    # objective (log det S + log det 2 pi Psi + (d - z W) Psi^-1 (d - z W)' + z z') / 2 (ibid., C.7 and C.14).
    loss = RowObjective

    def covers(self, model: Any) -> bool:
        return 0 < len(model.components_) <= LARGEST

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        n_components, n_features = model.components_.shape
        centred = op.Sub(x, op.parameter(model, "mean_", role="intercept"))
        loadings = op.parameter(model, "components_", role="weight")
        noise = op.parameter(model, "noise_variance_", role="scale", constraint=Positive())
        scaled = op.Div(loadings, noise)
        precision = op.Add(products(op, scaled, loadings), np.eye(n_components, dtype=op.float_dtype))
        projection, pivots = solve_positive(op, precision, scaled, n_components, n_features)
        factors = products(op, centred, projection)
        residual = op.Sub(centred, op.MatMul(factors, loadings))
        squares = op.ReduceSum(op.Div(op.Mul(residual, residual), noise), [1], keepdims=1)
        squares = op.Add(squares, op.ReduceSum(op.Mul(factors, factors), [1], keepdims=1))
        determinants = op.ReduceSum(op.Log(op.Concat(*pivots, axis=0)), keepdims=0)
        determinants = op.Add(determinants, op.ReduceSum(op.Log(op.Mul(noise, 2 * np.pi)), keepdims=0))
        score = op.Mul(op.Add(squares, determinants), 0.5)
        outputs = {"transformed": factors, "likelihood": op.Neg(score)}
        return Scores("unsupervised", score, 1, averaged=True, **outputs)


class SparsePCADefinition(ModelDefinition):
    """SparsePCA: ``(x - mean_) C' (C C' + ridge_alpha I)^-1`` (Hoerl and Kennard, Technometrics 12, 1970)."""

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
