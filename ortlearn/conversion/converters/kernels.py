"""Kernels of Gaussian processes between the rows of two matrices, hyper-parameters as initializers.

Formulas are those of Rasmussen, C. E. and Williams, C. K. I., "Gaussian Processes for Machine Learning",
MIT Press 2006, chapter 4, as ``sklearn.gaussian_process.kernels`` writes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from onnx import helper
from sklearn.gaussian_process import kernels

from ...exceptions import ConversionError
from ...graphs import GraphBuilder
from ...models.distances import pairwise_distances
from .writing import add_weight

__all__ = ["Rows", "kernel_diagonal", "kernel_matrix"]


class Rows:
    """The rows that a kernel compares with those of X.

    Parameters
    ----------
    op : GraphBuilder
        Where the nodes go.
    values : ndarray of shape (n, columns)
        Rows of the training data.
    """

    def __init__(self, op: GraphBuilder, values: np.ndarray):
        self.values = np.asarray(values, dtype=np.float64)
        self._op = op

    @cached_property
    def name(self) -> str:
        """Tensor, written once a kernel reads it."""
        return add_weight(self._op, "X_train", self.values)


def kernel_matrix(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    """Write a kernel between X and the rows it was fitted on.

    Parameters
    ----------
    op : GraphBuilder
        Where the nodes go.
    kernel : sklearn.gaussian_process.kernels.Kernel
        Fitted kernel.
    x : str
        Tensor of shape (n, columns).
    rows : Rows
        The m rows of the training data.

    Returns
    -------
    str
        Tensor of shape (n, m), or one that broadcasts to it where the kernel is constant.

    Raises
    ------
    ConversionError
        If the kernel has no form in ONNX.
    """
    write = next((MATRICES[kind] for kind in type(kernel).__mro__ if kind in MATRICES), None)
    if write is None:
        raise ConversionError(f"the kernel {kernel} has no form in ONNX here.")
    return write(op, kernel, x, rows)


def kernel_diagonal(op: GraphBuilder, kernel: Any, x: str) -> str:
    """Write the kernel of each row of X with itself, a tensor that broadcasts to (n, 1)."""
    if isinstance(kernel, kernels.KernelOperator):
        one, two = (kernel_diagonal(op, part, x) for part in (kernel.k1, kernel.k2))
        return op.Add(one, two) if isinstance(kernel, kernels.Sum) else op.Mul(one, two)
    if isinstance(kernel, kernels.Exponentiation):
        return op.Pow(kernel_diagonal(op, kernel.kernel, x), float(kernel.exponent))
    if isinstance(kernel, kernels.ConstantKernel):
        return add_weight(op, "constant_value", [kernel.constant_value])
    if isinstance(kernel, kernels.WhiteKernel):
        return add_weight(op, "noise_level", [kernel.noise_level])
    if isinstance(kernel, kernels.DotProduct):
        return op.Add(op.ReduceSumSquare(x, [1]), _squared(op, "sigma_0", kernel.sigma_0))
    if isinstance(kernel, kernels.PairwiseKernel):
        return _pairwise_diagonal(op, kernel, x)
    if isinstance(kernel, kernels.NormalizedKernelMixin | kernels.StationaryKernelMixin):
        return op.constant([1.0])
    raise ConversionError(f"the diagonal of the kernel {kernel} has no form in ONNX here.")


def _squared(op: GraphBuilder, stem: str, value: float) -> str:
    weight = add_weight(op, stem, [value])
    return op.Mul(weight, weight)


def _sum(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    return op.Add(kernel_matrix(op, kernel.k1, x, rows), kernel_matrix(op, kernel.k2, x, rows))


def _product(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    return op.Mul(kernel_matrix(op, kernel.k1, x, rows), kernel_matrix(op, kernel.k2, x, rows))


def _power(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    return op.Pow(kernel_matrix(op, kernel.kernel, x, rows), float(kernel.exponent))


def _constant(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    return add_weight(op, "constant_value", [kernel.constant_value])


def _white(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    # noise belongs to a row, and no row of X is one of the others
    return op.constant([0.0])


def _distances(op: GraphBuilder, x: str, rows: Rows, metric: str, scale: Any = None) -> str:
    """Return the distances of X to the rows, both divided by the length scale."""
    if scale is None:
        return pairwise_distances(op, x, rows.name, metric)
    weight = add_weight(op, "length_scale", np.atleast_1d(scale))
    scaled = op.Div(rows.name, weight)
    op.set_type(scaled, helper.np_dtype_to_tensor_dtype(op.float_dtype), rows.values.shape)
    return pairwise_distances(op, op.Div(x, weight), scaled, metric)


def _rbf(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    # exp(-d^2 / 2), d = |x / l - y / l|
    return op.Exp(op.Mul(_distances(op, x, rows, "sqeuclidean", kernel.length_scale), -0.5))


def _matern(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    # nu = 1/2: exp(-d); nu = 3/2: (1 + k) exp(-k), k = sqrt(3) d;
    # nu = 5/2: (1 + k + k^2 / 3) exp(-k), k = sqrt(5) d
    if kernel.nu == np.inf:
        return _rbf(op, kernel, x, rows)
    if kernel.nu not in (0.5, 1.5, 2.5):
        raise ConversionError(
            f"the kernel {kernel} takes a Bessel function, which ONNX lacks: use nu 0.5, 1.5, 2.5 or inf."
        )
    distance = _distances(op, x, rows, "euclidean", kernel.length_scale)
    if kernel.nu == 0.5:
        return op.Exp(op.Neg(distance))
    k = op.Mul(distance, math.sqrt(2 * kernel.nu))
    factor = op.Add(k, 1.0)
    if kernel.nu == 2.5:
        factor = op.Add(factor, op.Div(op.Mul(k, k), 3.0))
    return op.Mul(factor, op.Exp(op.Neg(k)))


def _rational_quadratic(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    # (1 + d^2 / (2 a))^(-a), d = |x / l - y / l|
    squares = _distances(op, x, rows, "sqeuclidean", kernel.length_scale)
    alpha = add_weight(op, "alpha", [kernel.alpha])
    return op.Pow(op.Add(op.Div(squares, op.Add(alpha, alpha)), 1.0), op.Neg(alpha))


def _exp_sine_squared(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    # exp(-2 (sin(pi d / p) / l)^2)
    periods = op.Div(
        _distances(op, x, rows, "euclidean"), add_weight(op, "periodicity", [kernel.periodicity])
    )
    scale = add_weight(op, "length_scale", np.atleast_1d(kernel.length_scale))
    wave = op.Div(op.Sin(op.Mul(periods, math.pi)), scale)
    return op.Exp(op.Mul(op.Mul(wave, wave), -2.0))


def _products(op: GraphBuilder, x: str, rows: Rows) -> str:
    # not MatMul of a Transpose: onnxruntime fuses them into an operator that has no float64 kernel
    return op.Gemm(x, rows.name, transB=1)


def _dot_product(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    # s^2 + x y'
    return op.Add(_products(op, x, rows), _squared(op, "sigma_0", kernel.sigma_0))


def _pairwise_diagonal(op: GraphBuilder, kernel: Any, x: str) -> str:
    if kernel.metric in ("rbf", "laplacian", "cosine"):
        return op.constant([1.0])
    return _of_products(op, kernel, op.ReduceSumSquare(x, [1]))


def _of_products(op: GraphBuilder, kernel: Any, products: str) -> str:
    """Return a kernel of products, its parameters but gamma as they are by default."""
    if kernel.metric == "linear":
        return products
    if kernel.metric not in ("poly", "polynomial", "sigmoid"):
        raise ConversionError(f"the kernel {kernel} has no form in ONNX here.")
    options = dict(kernel.pairwise_kernels_kwargs or {})
    scaled = op.Mul(products, add_weight(op, "gamma", [kernel.gamma]))
    affine = op.Add(scaled, float(options.get("coef0", 1)))
    return op.Tanh(affine) if kernel.metric == "sigmoid" else op.Pow(affine, float(options.get("degree", 3)))


def _pairwise(op: GraphBuilder, kernel: Any, x: str, rows: Rows) -> str:
    # those of sklearn.metrics.pairwise
    if kernel.metric == "cosine":
        lengths = np.linalg.norm(rows.values, axis=1)[None]
        size = op.Sqrt(op.Max(op.ReduceSumSquare(x, [1]), float(np.finfo(op.float_dtype).tiny)))
        return op.Div(_products(op, x, rows), op.Mul(size, op.constant(lengths.astype(op.float_dtype))))
    if kernel.metric in ("rbf", "laplacian"):
        metric = "sqeuclidean" if kernel.metric == "rbf" else "manhattan"
        gamma = add_weight(op, "gamma", [kernel.gamma])
        return op.Exp(op.Neg(op.Mul(_distances(op, x, rows, metric), gamma)))
    return _of_products(op, kernel, _products(op, x, rows))


#: Kernels by their type; subclasses take that of the first base here.
MATRICES: dict[type, Callable[[GraphBuilder, Any, str, Rows], str]] = {
    kernels.ConstantKernel: _constant,
    kernels.DotProduct: _dot_product,
    kernels.ExpSineSquared: _exp_sine_squared,
    kernels.Exponentiation: _power,
    kernels.Matern: _matern,
    kernels.PairwiseKernel: _pairwise,
    kernels.Product: _product,
    kernels.RBF: _rbf,
    kernels.RationalQuadratic: _rational_quadratic,
    kernels.Sum: _sum,
    kernels.WhiteKernel: _white,
}
