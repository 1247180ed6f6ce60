"""Gaussian processes: posterior means, and class probabilities averaged over the posterior."""

# Rasmussen, C. E. and Williams, C. K. I., "Gaussian Processes for Machine Learning", MIT Press 2006. Kernels
# (chapter 4) are defined as in sklearn.gaussian_process.kernels.

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import helper
from scipy.linalg import lapack
from sklearn.gaussian_process import _gpc, kernels
from sklearn.metrics.pairwise import KERNEL_PARAMS

from ..base import ModelDefinition
from ..capabilities import ShiftedScores
from ..constraints.signs import Positive
from ..forms import Form, Reshaped
from ..formulas.coupling import pair_table
from ..formulas.distances import pairwise_distances
from ..formulas.kernels import (
    KERNEL_METRICS,
    PAIRWISE,
    dot_product_kernel,
    pairwise_kernel,
    products,
    unit_rows,
)
from ..formulas.special_functions import erf, matern
from ..scores import Scores, classes_of_probabilities, classification, decisions, regression
from ..writer import FITTED, ModelWriter
from .multiclass import pair_decisions
from .support_vectors import dual_form, weighted_kernel

HYPER = "fitted hyper-parameter of the kernel"
CONSTANT = (kernels.ConstantKernel, kernels.WhiteKernel)


@dataclass(frozen=True)
class _Kernel:
    """Writer of the kernel of a process; ``reason`` is why the training samples are not trained, if so."""

    op: ModelWriter
    process: Any
    x: str
    reason: str = ""

    def matrix(self) -> str:
        """Append the kernel matrix of samples and training samples, of shape (n, n_fitted)."""
        result = self.part(self.process.kernel_, "kernel_")
        if _varies(self.process.kernel_):
            return result
        count = self.op.Slice(self.op.Shape(self.x), [0], [1])
        return self.op.Expand(result, self.op.Concat(count, [len(self.process.X_train_)], axis=0))

    def part(self, kernel: Any, path: str, diagonal: bool = False) -> str:
        """Append a kernel at a path, or only its diagonal, which broadcasts to (n, 1)."""
        op = self.op
        if isinstance(kernel, kernels.KernelOperator):
            one, two = (self.part(getattr(kernel, k), f"{path}.{k}", diagonal) for k in ("k1", "k2"))
            return op.Add(one, two) if isinstance(kernel, kernels.Sum) else op.Mul(one, two)
        if isinstance(kernel, kernels.Exponentiation):
            return op.Pow(self.part(kernel.kernel, f"{path}.kernel", diagonal), float(kernel.exponent))
        if isinstance(kernel, kernels.ConstantKernel):
            return self.hyperparameter(path, "constant_value")
        if isinstance(kernel, kernels.WhiteKernel):
            # noise is independent between new and training samples
            return self.hyperparameter(path, "noise_level") if diagonal else op.constant(0.0)
        if isinstance(kernel, kernels.DotProduct):  # s^2 + x y'
            sigma = self.hyperparameter(path, "sigma_0")
            return op.Add(self.products(diagonal), op.Mul(sigma, sigma))
        if isinstance(kernel, kernels.PairwiseKernel):
            return _pairwise(self, kernel, path, diagonal)
        if diagonal:
            return op.constant([1.0])  # stationary kernels
        write = next((STATIONARY[kind] for kind in type(kernel).__mro__ if kind in STATIONARY), None)
        if write is None:
            reason = f"the kernel {kernel} is not supported: use those of sklearn.gaussian_process.kernels."
            raise op.fail(self.process, reason)
        return write(self, kernel, path)

    def rows(self) -> str:
        """Return the training samples."""
        # the role of an intercept, so that penalties do not shrink the samples
        return self.op.parameter(self.process, "X_train_", role="intercept", reason=self.reason)

    def hyperparameter(self, path: str, name: str) -> str:
        """Return a hyper-parameter of the kernel at a path as a fixed parameter."""
        return self.op.parameter(self.process, f"{path}.{name}", role="scale", reason=HYPER)

    def products(self, diagonal: bool = False) -> str:
        """Append the dot products of samples and training samples, or of each sample with itself."""
        op = self.op
        return op.ReduceSumSquare(self.x, [1]) if diagonal else products(op, self.x, self.rows())

    def distances(self, metric: str, scale: str = "") -> str:
        """Append the distances to training samples, with features divided by the length scale."""
        x, rows, op = self.x, self.rows(), self.op
        if scale:
            shape = self.process.X_train_.shape
            x, rows = op.Div(x, scale), op.Div(rows, scale)
            op.set_type(rows, helper.np_dtype_to_tensor_dtype(op.float_dtype), shape)
        return pairwise_distances(op, x, rows, metric, smooth=metric == "sqeuclidean")


def _varies(kernel: Any) -> bool:
    """Return whether a kernel depends on the samples."""
    parts = [getattr(kernel, name) for name in ("k1", "k2", "kernel") if hasattr(kernel, name)]
    return any(map(_varies, parts)) if parts else not isinstance(kernel, CONSTANT)


def _matern(kernel: _Kernel, part: Any, path: str) -> str:
    # RBF is the limit of infinite nu
    squares = kernel.distances("sqeuclidean", kernel.hyperparameter(path, "length_scale"))
    return matern(kernel.op, squares, getattr(part, "nu", np.inf))


def _rational_quadratic(kernel: _Kernel, part: Any, path: str) -> str:
    # (1 + d^2 / (2 a))^(-a), d = |x / l - y / l|
    op, alpha = kernel.op, kernel.hyperparameter(path, "alpha")
    squares = kernel.distances("sqeuclidean", kernel.hyperparameter(path, "length_scale"))
    return op.Pow(op.Add(op.Div(squares, op.Add(alpha, alpha)), 1.0), op.Neg(alpha))


def _exp_sine_squared(kernel: _Kernel, part: Any, path: str) -> str:
    # exp(-2 (sin(pi d / p) / l)^2)
    op = kernel.op
    periods = op.Div(kernel.distances("euclidean"), kernel.hyperparameter(path, "periodicity"))
    wave = op.Div(op.Sin(op.Mul(periods, math.pi)), kernel.hyperparameter(path, "length_scale"))
    return op.Exp(op.Mul(op.Mul(wave, wave), -2.0))


def _pairwise(kernel: _Kernel, part: Any, path: str, diagonal: bool) -> str:
    """Append a kernel of sklearn.metrics.pairwise."""
    op, metric = kernel.op, part.metric
    if not isinstance(metric, str) or metric not in PAIRWISE or (diagonal and metric == "precomputed"):
        supported = ", ".join(sorted(PAIRWISE - {"precomputed"}))
        raise op.fail(kernel.process, f"the metric of {part} is not supported: use one of {supported}.")
    kwargs = part.pairwise_kernels_kwargs or {}
    if diagonal and metric in KERNEL_METRICS:
        return op.constant([0.0 if metric == "additive_chi2" else 1.0])
    if diagonal and metric == "cosine":
        return op.ReduceSumSquare(unit_rows(op, kernel.x), [1])
    gamma: Any = kernel.hyperparameter(path, "gamma") if "gamma" in KERNEL_PARAMS.get(metric, ()) else 1.0
    options = gamma, float(kwargs.get("coef0", 1)), float(kwargs.get("degree", 3))
    if diagonal:
        return dot_product_kernel(op, kernel.products(diagonal), metric, *options)
    rows = "" if metric == "precomputed" else kernel.rows()
    return pairwise_kernel(op, kernel.x, rows, metric, *options)


#: Writers of stationary kernels, also used for subclasses.
STATIONARY: dict[type, Callable[[_Kernel, Any, str], str]] = {
    kernels.ExpSineSquared: _exp_sine_squared,
    kernels.Matern: _matern,
    kernels.RBF: _matern,
    kernels.RationalQuadratic: _rational_quadratic,
}


class GaussianProcessRegressorDefinition(ModelDefinition):
    """GaussianProcessRegressor: ``K(X, X_train_) alpha_`` in the units of y (algorithm 2.1)."""

    capabilities = (ShiftedScores(attribute="_y_train_mean"),)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        kernel = _Kernel(op, model, x).matrix()
        n_outputs = model.alpha_.size // len(model.alpha_)
        weights = op.parameter(model, "alpha_", form=dual_form(model.alpha_), role="weight")
        mean, flat = weighted_kernel(op, kernel, weights), Reshaped((-1,))
        if model.normalize_y:
            std = op.parameter(model, "_y_train_std", form=flat, role="scale", constraint=Positive())
            mean = op.Mul(mean, std)
        mean = op.Add(mean, op.parameter(model, "_y_train_mean", form=flat, role="intercept"))
        return regression(op, mean, n_outputs)

    def finish(self, model: Any) -> None:
        # predict uses the Cholesky factor of the kernel for standard deviations only
        kernel = model.kernel_(model.X_train_)
        kernel[np.diag_indices_from(kernel)] += model.alpha
        model.L_ = np.linalg.cholesky(kernel)


@dataclass(frozen=True)
class Residuals(Form):
    """Labels minus probabilities, of shape (n_samples, 1)."""

    labels: np.ndarray
    text = "y_train_ - {}"
    wide = True  # classes are signs of their sums, weighted with kernels that may be zero in float32

    def forward(self, value: np.ndarray) -> np.ndarray:
        return (self.labels - value)[:, np.newaxis]

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return self.labels - value.reshape(like.shape)


class GaussianProcessClassifierDefinition(ModelDefinition):
    """GaussianProcessClassifier: one binary process, or one for each class or pair of classes."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        with op.inside("base_estimator_"):
            if len(model.classes_) == 2:
                latent, spread = _binary_process(op, model.base_estimator_, x)
                positive = _positive(op, latent, spread)
                scores = classes_of_probabilities(op, op.binary_probabilities(positive), model.classes_)
                return replace(scores, label=decisions(op, latent, model.classes_).label)
            members = []
            for index, member in enumerate(model.base_estimator_.estimators_):
                with op.inside(f"estimators_[{index}]"):
                    members.append(_binary_process(op, member, x))
        latents, spreads = (op.joined(columns) for columns in zip(*members, strict=True))
        positives = _positive(op, latents, spreads, len(members))
        if model.multi_class == "one_vs_one":
            return _one_vs_one(op, latents, positives, model.classes_)
        shares = op.Div(positives, op.ReduceSum(positives, [1]))
        return classes_of_probabilities(op, shares, model.classes_)


def _one_vs_one(op: ModelWriter, latents: str, second: str, classes: np.ndarray) -> Scores:
    """Return scores of pairwise votes, trained on the log of the product of pairwise probabilities."""
    above = op.Greater(latents, 0.0)
    votes = pair_decisions(op, above, second, len(classes))[0]
    table = pair_table(len(classes)).astype(op.float_dtype)
    first, last = (np.maximum(sign * table, 0) for sign in (1, -1))
    lost = op.MatMul(op.log_probabilities(second), last)
    score = op.Add(op.MatMul(op.log_probabilities(op.Sub(1.0, second)), first), lost)
    return classification(op, score, "softmax", votes, classes)


def _binary_process(op: ModelWriter, process: Any, x: str) -> tuple[str, str]:
    """Append the latent mean of a binary process, as a column, and the spreads of :func:`_positive`."""
    # Rasmussen and Williams, algorithm 3.2: f = K (y - pi), v = L^-1 W^(1/2) K', s = k(x, x) - v v'.
    writer = _Kernel(op, process, x, FITTED)
    kernel = writer.matrix()
    residuals = op.parameter(process, "pi_", form=Residuals(process.y_train_), role="weight")
    latent = op.MatMul(kernel, residuals)
    inverse, _ = lapack.dtrtri(process.L_, lower=1)
    factor = (inverse * process.W_sr_).T.astype(op.float_dtype)
    v = op.MatMul(kernel, np.ascontiguousarray(factor))
    diagonal = writer.part(process.kernel_, "kernel_", diagonal=True)
    variance = op.Max(op.Sub(diagonal, op.ReduceSumSquare(v, [1])), 0.0)
    slopes = np.ravel(_gpc.LAMBDAS).astype(op.float_dtype)
    return latent, op.Sqrt(op.Add(op.Mul(variance, 2 * slopes * slopes), 1.0))


def _positive(op: ModelWriter, latents: str, spreads: str, n_processes: int = 1) -> str:
    """Append the probabilities of the second class, of shape (n, k), for all processes at once."""
    # The logistic function sum c erf(l z) / 2 + sum c / 2 (Williams, C. K. I. and Barber, D., "Bayesian
    # classification with Gaussian processes", IEEE TPAMI 1998, appendix A), averaged over N(f, s), is
    # sum c erf(l f / sqrt(1 + 2 l^2 s)) / 2 + sum c / 2.
    slopes, shares = (np.ravel(c).astype(op.float_dtype) for c in (_gpc.LAMBDAS, _gpc.COEFS))
    spreads = op.Reshape(spreads, [-1, n_processes, len(slopes)])
    terms = op.Mul(erf(op, op.Div(op.Mul(op.Unsqueeze(latents, [2]), slopes), spreads)), shares)
    total = op.Add(op.ReduceSum(terms, [2], keepdims=0), float(_gpc.COEFS.sum()))
    return op.Mul(total, 0.5)
