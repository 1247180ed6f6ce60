"""Kernels of Gaussian processes between samples and those of the fit.

Formulas are those of Rasmussen, C. E. and Williams, C. K. I., "Gaussian Processes for Machine Learning",
MIT Press 2006, chapter 4, as ``sklearn.gaussian_process.kernels`` writes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import helper
from sklearn.gaussian_process import kernels

from .distances import pairwise_distances
from .kernels import products
from .writer import ModelWriter

HYPER = "fitted hyper-parameter of the kernel"


@dataclass(frozen=True)
class ProcessKernel:
    """Write the kernel of a process.

    Attributes
    ----------
    op : ModelWriter
        Receives nodes and parameters.
    process : estimator
        Has ``kernel_`` and ``X_train_``.
    x : str
        Samples.
    reason : str
        Why the samples of the fit are not trained by default, empty where they are.
    """

    op: ModelWriter
    process: Any
    x: str
    reason: str = ""

    def matrix(self) -> str:
        """Append the kernel of samples and those of the fit, of shape (n, n_fitted)."""
        result = self.of_rows(self.process.kernel_, "kernel_")
        if _varies(self.process.kernel_):
            return result
        count = self.op.Slice(self.op.Shape(self.x), [0], [1])
        return self.op.Expand(result, self.op.Concat(count, [len(self.process.X_train_)], axis=0))

    def diagonal(self) -> str:
        """Append the kernel of each sample with itself, a tensor that broadcasts to (n, 1)."""
        return self.of_itself(self.process.kernel_, "kernel_")

    def rows(self) -> str:
        """Return the samples of the fit."""
        # a penalty pulls nothing towards zero that only is somewhere
        return self.op.parameter(self.process, "X_train_", role="intercept", reason=self.reason)

    def number(self, path: str, name: str) -> str:
        """Return a hyper-parameter of the kernel at a path."""
        return self.op.parameter(self.process, f"{path}.{name}", role="scale", reason=HYPER)

    def of_rows(self, kernel: Any, path: str) -> str:
        """Append a kernel, or a part of one, of samples and those of the fit."""
        write = next((MATRICES[kind] for kind in type(kernel).__mro__ if kind in MATRICES), None)
        if write is None:
            raise self.op.fail(self.process, f"the kernel {kernel} has no form in ONNX here.")
        return write(self, kernel, path)

    def of_itself(self, kernel: Any, path: str) -> str:
        """Append a kernel, or a part of one, of each sample with itself."""
        op = self.op
        if isinstance(kernel, kernels.KernelOperator):
            one, two = self.of_itself(kernel.k1, f"{path}.k1"), self.of_itself(kernel.k2, f"{path}.k2")
            return op.Add(one, two) if isinstance(kernel, kernels.Sum) else op.Mul(one, two)
        if isinstance(kernel, kernels.Exponentiation):
            return op.Pow(self.of_itself(kernel.kernel, f"{path}.kernel"), float(kernel.exponent))
        if isinstance(kernel, kernels.ConstantKernel | kernels.WhiteKernel):
            return self.number(path, "constant_value" if hasattr(kernel, "constant_value") else "noise_level")
        if isinstance(kernel, kernels.DotProduct):
            return op.Add(op.ReduceSumSquare(self.x, [1]), self.square(path, "sigma_0"))
        if isinstance(kernel, kernels.PairwiseKernel) and kernel.metric not in NORMALISED:
            return _of_products(self, kernel, path, op.ReduceSumSquare(self.x, [1]))
        return op.constant([1.0])  # that of a kernel of distances, or of a cosine

    def square(self, path: str, name: str) -> str:
        """Return the square of a hyper-parameter."""
        number = self.number(path, name)
        return self.op.Mul(number, number)

    def distances(self, metric: str, scale: str = "") -> str:
        """Append the distances of samples to those of the fit, both divided by the length scale."""
        x, rows, op = self.x, self.rows(), self.op
        if scale:
            shape = self.process.X_train_.shape
            x, rows = op.Div(x, scale), op.Div(rows, scale)
            op.set_type(rows, helper.np_dtype_to_tensor_dtype(op.float_dtype), shape)
        return pairwise_distances(op, x, rows, metric)


#: Metrics of PairwiseKernel that give 1 for a sample and itself.
NORMALISED = ("rbf", "laplacian", "cosine")


def _varies(kernel: Any) -> bool:
    """Return whether a kernel depends on the samples."""
    if isinstance(kernel, kernels.KernelOperator):
        return _varies(kernel.k1) or _varies(kernel.k2)
    if isinstance(kernel, kernels.Exponentiation):
        return _varies(kernel.kernel)
    return not isinstance(kernel, kernels.ConstantKernel | kernels.WhiteKernel)


def _sum(kernel: ProcessKernel, part: Any, path: str) -> str:
    return kernel.op.Add(kernel.of_rows(part.k1, f"{path}.k1"), kernel.of_rows(part.k2, f"{path}.k2"))


def _product(kernel: ProcessKernel, part: Any, path: str) -> str:
    return kernel.op.Mul(kernel.of_rows(part.k1, f"{path}.k1"), kernel.of_rows(part.k2, f"{path}.k2"))


def _power(kernel: ProcessKernel, part: Any, path: str) -> str:
    return kernel.op.Pow(kernel.of_rows(part.kernel, f"{path}.kernel"), float(part.exponent))


def _constant(kernel: ProcessKernel, part: Any, path: str) -> str:
    return kernel.number(path, "constant_value")


def _white(kernel: ProcessKernel, part: Any, path: str) -> str:
    # noise belongs to a sample of the fit, and no new sample is one of these
    return kernel.op.constant(0.0)


def _rbf(kernel: ProcessKernel, part: Any, path: str) -> str:
    # exp(-d^2 / 2), d = |x / l - y / l|
    squares = kernel.distances("sqeuclidean", kernel.number(path, "length_scale"))
    return kernel.op.Exp(kernel.op.Mul(squares, -0.5))


def _matern(kernel: ProcessKernel, part: Any, path: str) -> str:
    # nu = 1/2: exp(-d); nu = 3/2: (1 + k) exp(-k), k = sqrt(3) d;
    # nu = 5/2: (1 + k + k^2 / 3) exp(-k), k = sqrt(5) d
    op = kernel.op
    if part.nu == np.inf:
        return _rbf(kernel, part, path)
    if part.nu not in (0.5, 1.5, 2.5):
        raise op.fail(
            kernel.process,
            f"the kernel {part} takes a Bessel function, which ONNX lacks: use nu 0.5, 1.5, 2.5 or inf.",
        )
    distance = kernel.distances("euclidean", kernel.number(path, "length_scale"))
    if part.nu == 0.5:
        return op.Exp(op.Neg(distance))
    k = op.Mul(distance, math.sqrt(2 * part.nu))
    factor = op.Add(k, 1.0)
    if part.nu == 2.5:
        factor = op.Add(factor, op.Div(op.Mul(k, k), 3.0))
    return op.Mul(factor, op.Exp(op.Neg(k)))


def _rational_quadratic(kernel: ProcessKernel, part: Any, path: str) -> str:
    # (1 + d^2 / (2 a))^(-a), d = |x / l - y / l|
    op, alpha = kernel.op, kernel.number(path, "alpha")
    squares = kernel.distances("sqeuclidean", kernel.number(path, "length_scale"))
    return op.Pow(op.Add(op.Div(squares, op.Add(alpha, alpha)), 1.0), op.Neg(alpha))


def _exp_sine_squared(kernel: ProcessKernel, part: Any, path: str) -> str:
    # exp(-2 (sin(pi d / p) / l)^2)
    op = kernel.op
    periods = op.Div(kernel.distances("euclidean"), kernel.number(path, "periodicity"))
    wave = op.Div(op.Sin(op.Mul(periods, math.pi)), kernel.number(path, "length_scale"))
    return op.Exp(op.Mul(op.Mul(wave, wave), -2.0))


def _dot_product(kernel: ProcessKernel, part: Any, path: str) -> str:
    # s^2 + x y'
    return kernel.op.Add(products(kernel.op, kernel.x, kernel.rows()), kernel.square(path, "sigma_0"))


def _of_products(kernel: ProcessKernel, part: Any, path: str, found: str) -> str:
    """Return a kernel of products, its parameters but gamma as they are by default."""
    op = kernel.op
    if part.metric == "linear":
        return found
    if part.metric not in ("poly", "polynomial", "sigmoid"):
        raise op.fail(kernel.process, f"the kernel {part} has no form in ONNX here.")
    options = dict(part.pairwise_kernels_kwargs or {})
    affine = op.Add(op.Mul(found, kernel.number(path, "gamma")), float(options.get("coef0", 1)))
    return op.Tanh(affine) if part.metric == "sigmoid" else op.Pow(affine, float(options.get("degree", 3)))


def _pairwise(kernel: ProcessKernel, part: Any, path: str) -> str:
    # those of sklearn.metrics.pairwise
    op = kernel.op
    if part.metric in ("rbf", "laplacian"):
        metric = "sqeuclidean" if part.metric == "rbf" else "manhattan"
        return op.Exp(op.Neg(op.Mul(kernel.distances(metric), kernel.number(path, "gamma"))))
    rows = kernel.rows()
    found = products(op, kernel.x, rows)
    if part.metric != "cosine":
        return _of_products(kernel, part, path, found)
    tiny = float(np.finfo(op.float_dtype).tiny)
    sizes = op.Sqrt(op.Max(op.ReduceSumSquare(kernel.x, [1]), tiny))
    lengths = op.Sqrt(op.Max(op.ReduceSumSquare(rows, [1], keepdims=0), tiny))
    return op.Div(found, op.Mul(sizes, lengths))


#: Kernels by their type; subclasses take that of the first base here.
MATRICES: dict[type, Callable[[ProcessKernel, Any, str], str]] = {
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
