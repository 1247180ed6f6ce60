"""Kernels between samples, and approximate feature maps of kernels."""

# Formulas follow Chang and Lin, "LIBSVM: a library for support vector machines", ACM TIST 2011, section
# 3, and sklearn.metrics.pairwise for kernels of histograms.

import math
from typing import Any

import numpy as np

from ...graphs import GraphBuilder
from ..base import ModelDefinition
from ..constraints.signs import NotNegative
from ..forms import Transposed, dense_form
from ..scores import Scores, transformation
from ..writer import ModelWriter
from .distances import pairwise_distances
from .special_functions import exponential

#: Kernels of dot products.
DOT_PRODUCT_KERNELS = frozenset(("cosine", "linear", "poly", "polynomial", "sigmoid"))
#: Metrics of the kernels of distances.
KERNEL_METRICS = {"additive_chi2": "chi2", "chi2": "chi2", "laplacian": "manhattan", "rbf": "sqeuclidean"}
HISTOGRAM_KERNELS = frozenset(("additive_chi2", "chi2"))  # require nonnegative samples
PAIRWISE = DOT_PRODUCT_KERNELS | KERNEL_METRICS.keys() | {"precomputed"}  # supported kernels
MAX_CHAIN = 16  # largest power written as a chain of products, whose gradient is exact at zero


def products(op: GraphBuilder, x: str, rows: str) -> str:
    """Return ``x y'`` of matrices of shape (n, n_features) and (m, n_features)."""
    # not MatMul of a Transpose: onnxruntime fuses them into an operator that has no float64 kernel
    return op.Gemm(x, rows, transB=1)


def dot_product_kernel(
    op: GraphBuilder, dots: str, kernel: str, gamma: Any = 1.0, coef0: Any = 1.0, degree: float = 3.0
) -> str:
    """Return a kernel of dot products p, such as ``(gamma p + coef0) ** degree``."""
    if kernel == "linear":
        return dots
    base = op.Add(op.Mul(dots, gamma), coef0)
    if kernel == "sigmoid":
        return op.Tanh(base)
    if not float(degree).is_integer() or not 1 <= degree <= MAX_CHAIN:
        return op.Pow(base, float(degree))
    return _power(op, base, int(degree))


def _power(op: GraphBuilder, base: str, degree: int) -> str:
    """Return a positive integer power by repeated squaring."""
    if degree == 1:
        return base
    half = _power(op, base, degree // 2)
    square = op.Mul(half, half)
    return op.Mul(square, base) if degree % 2 else square


def pairwise_kernel(
    op: GraphBuilder, x: str, rows: str, kernel: str, gamma: Any = 1.0, coef0: Any = 1.0, degree: float = 3.0
) -> str:
    """Return a kernel of :mod:`sklearn.metrics.pairwise`, of shape (n, m); x if precomputed."""
    if kernel == "precomputed":
        return x
    if kernel == "cosine":
        return products(op, unit_rows(op, x), unit_rows(op, rows))
    if kernel in DOT_PRODUCT_KERNELS:
        return dot_product_kernel(op, products(op, x, rows), kernel, gamma, coef0, degree)
    distances = pairwise_distances(op, x, rows, KERNEL_METRICS[kernel], smooth=True)
    if kernel == "additive_chi2":
        return op.Neg(distances)
    return exponential(op, op.Neg(op.Mul(distances, gamma)))


def default_gamma(kernel: str, gamma: float | None, n_features: int) -> float:
    """Return ``gamma``, or the default of :mod:`sklearn.metrics.pairwise` for None."""
    if gamma is not None:
        return float(gamma)
    return 1.0 if kernel == "chi2" else 1.0 / n_features


def training_samples(op: ModelWriter, model: Any, attribute: str, kernel: str) -> str:
    """Return the training samples of a kernel; an empty name if the kernel is precomputed."""
    if kernel == "precomputed":
        return ""
    role = "weight" if kernel in DOT_PRODUCT_KERNELS else "intercept"
    constraint = NotNegative() if kernel in HISTOGRAM_KERNELS else None
    form = dense_form(getattr(model, attribute))
    return op.parameter(model, attribute, form=form, role=role, constraint=constraint)


def fitted_kernel(
    op: ModelWriter, model: Any, x: str, attribute: str, gamma: float, coef0: Any, degree: Any
) -> str:
    """Return the kernel between samples and the training samples of an estimator."""
    rows = training_samples(op, model, attribute, model.kernel)
    return pairwise_kernel(op, x, rows, model.kernel, gamma, float(coef0), float(degree))


class KernelDefinition(ModelDefinition):
    """Base class of estimators with a kernel of :mod:`sklearn.metrics.pairwise`."""

    def covers(self, model: Any) -> bool:
        return isinstance(model.kernel, str) and model.kernel in PAIRWISE


def centred_kernel(op: ModelWriter, kernel: str, model: Any, path: str = "") -> str:
    """Return ``k(x, f_i) - mean_j k(x, f_j) - K_fit_rows_i + K_fit_all``, KernelCenterer at ``path``."""
    centred = op.Sub(kernel, op.ReduceMean(kernel, [1], keepdims=1))
    centred = op.Sub(centred, op.parameter(model, f"{path}K_fit_rows_", role="intercept"))
    return op.Add(centred, op.parameter(model, f"{path}K_fit_all_", role="intercept"))


def radial(op: GraphBuilder, x: str, rows: str, gamma: str, centre: np.ndarray | None = None) -> str:
    """Return ``exp(-gamma |x - y|^2)``, by a matrix product, after subtracting ``centre``."""
    # -g |x - y|^2 = 2 g x.y - g |y|^2 - g |x|^2; the last term depends on x only
    if centre is not None:
        x, rows = op.Sub(x, centre), op.Sub(rows, centre)
    scaled = products(op, op.Mul(x, op.Mul(gamma, 2.0)), rows)
    row_norms = op.Mul(op.ReduceSum(op.Mul(rows, rows), [1], keepdims=0), gamma)
    norms = op.Mul(op.ReduceSum(op.Mul(x, x), [1], keepdims=1), gamma)
    return exponential(op, op.Sub(op.Sub(scaled, row_norms), norms))


def unit_rows(op: GraphBuilder, x: str, norm: str = "l2") -> str:
    """Return rows divided by their ``"l1"``, ``"l2"`` or ``"max"`` norm; zero rows are unchanged."""
    if norm == "l2":
        squares = op.ReduceSum(op.Mul(x, x), [1], keepdims=1)  # a third of the time of ReduceSumSquare
        return op.Div(x, op.Sqrt(op.Where(op.Equal(squares, 0.0), 1.0, squares)))
    size = op.node("ReduceSum" if norm == "l1" else "ReduceMax", op.Abs(x), [1], keepdims=1)
    return op.Div(x, op.Where(op.Equal(size, 0.0), 1.0, size))


def remote_centre(rows: np.ndarray) -> np.ndarray | None:
    """Return the mean of samples to subtract against cancellation, or None if it is near zero."""
    centre = rows.mean(axis=0)
    is_far = np.square(centre).sum() > np.square(rows - centre).sum(axis=1).mean()
    return centre if is_far else None


#: Intervals of :class:`~sklearn.kernel_approximation.AdditiveChi2Sampler` by its number of steps.
INTERVALS = {1: 0.8, 2: 0.5, 3: 0.4}


def cosine(op: GraphBuilder, x: str) -> str:
    """Return the cosine as a shifted sine, as onnxruntime has no float64 Cos."""
    return op.Sin(op.Add(x, math.pi / 2))


class NystroemDefinition(KernelDefinition):
    """Nystroem: ``K(x, components_) normalization_'`` (Williams and Seeger, NIPS 2000)."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        # parameters override kernel_params, which override the defaults of the kernel
        params = {"coef0": 1.0, "degree": 3.0, **(model.kernel_params or {})}
        params |= {name: getattr(model, name) for name in params if getattr(model, name, None) is not None}
        gamma = model.gamma if model.gamma is not None else params.get("gamma")
        gamma = default_gamma(model.kernel, gamma, model.n_features_in_)
        kernel = fitted_kernel(op, model, x, "components_", gamma, params["coef0"], params["degree"])
        mixed = op.parameter(model, "normalization_", form=Transposed(), role="weight")
        return transformation(op, op.MatMul(kernel, mixed), len(model.normalization_))


class RBFSamplerDefinition(ModelDefinition):
    """RBFSampler: ``sqrt(2 / n) cos(x random_weights_ + random_offset_)`` (Rahimi and Recht, NIPS 2007)."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        weights = op.parameter(model, "random_weights_", role="weight")
        offset = op.parameter(model, "random_offset_", role="intercept")
        waves = cosine(op, op.Add(op.MatMul(self.features(op, model, x), weights), offset))
        n_components = len(model.random_offset_)
        return transformation(op, op.Mul(waves, math.sqrt(2.0 / n_components)), n_components)

    def features(self, op: ModelWriter, model: Any, x: str) -> str:
        """Append the features to multiply by the random weights."""
        return x


class SkewedChi2SamplerDefinition(RBFSamplerDefinition):
    """SkewedChi2Sampler: RBFSampler of ``log(x + skewedness)`` (Li, Ionescu and Sminchisescu, DAGM 2010)."""

    def features(self, op: ModelWriter, model: Any, x: str) -> str:
        return op.Log(op.Add(x, float(model.skewedness)))


class AdditiveChi2SamplerDefinition(ModelDefinition):
    """AdditiveChi2Sampler: ``sqrt(x L)`` with interval L, cosines and sines of ``j L log x``, steps j."""

    # cosines and sines are multiplied by sqrt(2 x L / cosh(pi j L)) (Vedaldi and Zisserman, "Efficient
    # additive kernels via explicit feature maps", IEEE TPAMI 2012)
    untrained = "it has no parameters"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        steps = int(model.sample_steps)
        length = INTERVALS[steps] if model.sample_interval is None else float(model.sample_interval)
        # the terms of zeros are zero; their logarithm is replaced by that of one
        is_zero = op.Equal(x, 0.0)
        positive = op.Where(is_zero, 1.0, x)
        roots = op.Where(is_zero, 0.0, op.Sqrt(op.Mul(positive, length)))
        parts = [roots]
        for j in range(1, steps):
            size = op.Mul(roots, math.sqrt(2.0 / math.cosh(math.pi * j * length)))
            angle = op.Mul(op.Log(positive), j * length)
            parts += [op.Mul(size, cosine(op, angle)), op.Mul(size, op.Sin(angle))]
        return transformation(op, op.joined(parts), len(parts) * model.n_features_in_)


class PolynomialCountSketchDefinition(ModelDefinition):
    """PolynomialCountSketch: the circular convolution of ``degree`` hashes, by Fourier transforms."""

    # Pham, N. and Pagh, R., "Fast and scalable polynomial kernels via explicit feature maps", KDD 2013; the
    # result is real, so that half of the frequencies are enough
    untrained = "it sums columns by random hashes, and has no parameters to train"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        n = int(model.n_components)
        frequencies = np.arange(n // 2 + 1)
        angles = 2 * np.pi * (np.outer(np.arange(n), frequencies) % n) / n
        product: tuple[str, str] | None = None
        for indices, signs in zip(model.indexHash_, model.bitHash_, strict=True):
            transform = self._transforms(op, model, x, signs[:, np.newaxis] * np.exp(-1j * angles[indices]))
            if product is None:
                product = transform
                continue
            (a, b), (c, d) = product, transform
            real, imaginary = op.Sub(op.Mul(a, c), op.Mul(b, d)), op.Add(op.Mul(a, d), op.Mul(b, c))
            product = real, imaginary
        assert product is not None
        # frequencies between the first and the middle one count twice
        weights = np.where((frequencies == 0) | (2 * frequencies == n), 1.0, 2.0) / n
        back = np.concatenate([weights * np.cos(angles), -weights * np.sin(angles)], axis=1).T
        result = op.MatMul(op.Concat(*product, axis=1), np.ascontiguousarray(back, dtype=op.float_dtype))
        return transformation(op, result, n)

    def _transforms(self, op: ModelWriter, model: Any, x: str, matrix: np.ndarray) -> tuple[str, str]:
        """Append the real and the imaginary part of the Fourier transform of a hash."""
        n_columns = model.n_features_in_
        parts = []
        for part in (matrix.real, matrix.imag):
            scaled = np.ascontiguousarray(math.sqrt(model.gamma) * part[:n_columns], dtype=op.float_dtype)
            parts.append(op.MatMul(x, scaled))
            if len(matrix) > n_columns:  # a column of ones, for the coefficient of degree zero
                constant = math.sqrt(model.coef0) * part[n_columns:]
                parts[-1] = op.Add(parts[-1], np.ascontiguousarray(constant, dtype=op.float_dtype))
        return parts[0], parts[1]


class KernelCentererDefinition(ModelDefinition):
    """KernelCenterer: centred kernels between samples and training samples (Schölkopf et al., 1998)."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return transformation(op, centred_kernel(op, x, model), len(model.K_fit_rows_))
