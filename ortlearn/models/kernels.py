"""Kernels between samples and the samples of a fit: those of support vector machines, and all others.

Chang and Lin, "LIBSVM: a library for support vector machines", ACM TIST 2011, section 3; kernels of
histograms as :mod:`sklearn.metrics.pairwise` writes them.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..graphs import GraphBuilder
from .constraints.signs import NotNegative
from .distances import pairwise_distances
from .forms import dense_form

if TYPE_CHECKING:
    from .writer import ModelWriter

#: Kernels of scalar products.
OF_PRODUCTS = frozenset(("cosine", "linear", "poly", "polynomial", "sigmoid"))
#: Kernels of distances, each with its metric.
METRIC_OF = {"additive_chi2": "chi2", "chi2": "chi2", "laplacian": "manhattan", "rbf": "sqeuclidean"}
#: Kernels of samples that have no negative number.
OF_HISTOGRAMS = frozenset(("additive_chi2", "chi2"))
#: Kernels that have a form; functions of users have none.
PAIRWISE = OF_PRODUCTS | METRIC_OF.keys() | {"precomputed"}

#: Largest power written as a chain of products, whose gradient is exact at zero too.
MAX_CHAIN = 16


def products(op: GraphBuilder, x: str, rows: str) -> str:
    """Return ``x y'`` of matrices of shape (n, n_features) and (m, n_features)."""
    # not MatMul of a Transpose: onnxruntime fuses them into an operator that has no float64 kernel
    return op.Gemm(x, rows, transB=1)


def of_products(
    op: GraphBuilder, found: str, kernel: str, gamma: Any = 1.0, coef0: Any = 1.0, degree: float = 3.0
) -> str:
    """Return a kernel that is a function of scalar products p of samples.

    It is ``"linear"``, ``"poly"`` or ``"polynomial"``, ``(gamma p + coef0) ** degree``, or ``"sigmoid"``,
    ``tanh(gamma p + coef0)``; ``gamma`` and ``coef0`` are tensors or numbers.
    """
    if kernel == "linear":
        return found
    base = op.Add(op.Mul(found, gamma), coef0)
    if kernel == "sigmoid":
        return op.Tanh(base)
    if not float(degree).is_integer() or not 1 <= degree <= MAX_CHAIN:
        return op.Pow(base, float(degree))
    return _power(op, base, int(degree))


def _power(op: GraphBuilder, base: str, degree: int) -> str:
    if degree == 1:
        return base
    half = _power(op, base, degree // 2)
    square = op.Mul(half, half)
    return op.Mul(square, base) if degree % 2 else square


def pairwise_kernel(
    op: GraphBuilder, x: str, rows: str, kernel: str, gamma: Any = 1.0, coef0: Any = 1.0, degree: float = 3.0
) -> str:
    """Return a kernel of :mod:`sklearn.metrics.pairwise`, of shape (n, m); a precomputed one is x itself."""
    if kernel == "precomputed":
        return x
    if kernel == "cosine":
        return products(op, unit_rows(op, x), unit_rows(op, rows))
    if kernel in OF_PRODUCTS:
        return of_products(op, products(op, x, rows), kernel, gamma, coef0, degree)
    distances = pairwise_distances(op, x, rows, METRIC_OF[kernel])
    return op.Neg(distances) if kernel == "additive_chi2" else op.Exp(op.Neg(op.Mul(distances, gamma)))


def default_gamma(kernel: str, gamma: float | None, n_features: int) -> float:
    """Return ``gamma`` of a kernel of :mod:`sklearn.metrics.pairwise`, its own default for None."""
    if gamma is not None:
        return float(gamma)
    return 1.0 if kernel == "chi2" else 1.0 / n_features


def fitted_rows(op: "ModelWriter", model: Any, attribute: str, kernel: str) -> str:
    """Return the samples of a fit that a kernel compares with; they are no parameter of a precomputed one."""
    if kernel == "precomputed":
        return ""
    role = "weight" if kernel in OF_PRODUCTS else "intercept"
    constraint = NotNegative() if kernel in OF_HISTOGRAMS else None
    form = dense_form(getattr(model, attribute))
    return op.parameter(model, attribute, form=form, role=role, constraint=constraint)


def centred_kernel(op: "ModelWriter", kernel: str, model: Any, path: str = "") -> str:
    """Return ``k(x, f_i) - mean_j k(x, f_j) - K_fit_rows_i + K_fit_all``, of the KernelCenterer at a path."""
    centred = op.Sub(kernel, op.ReduceMean(kernel, [1], keepdims=1))
    centred = op.Sub(centred, op.parameter(model, f"{path}K_fit_rows_", role="intercept"))
    return op.Add(centred, op.parameter(model, f"{path}K_fit_all_", role="intercept"))


def radial(op: GraphBuilder, x: str, rows: str, gamma: str, centre: np.ndarray | None = None) -> str:
    """Return ``exp(-gamma |x - y|^2)``, by a product of matrices; centre as of :func:`remote_centre`."""
    # -g |x - y|^2 = 2 g x.y - g |y|^2 - g |x|^2. What depends on the samples alone is computed once.
    if centre is not None:
        x, rows = op.Sub(x, centre), op.Sub(rows, centre)
    scaled = products(op, op.Mul(x, op.Mul(gamma, 2.0)), rows)
    sizes = op.Mul(op.ReduceSum(op.Mul(rows, rows), [1], keepdims=0), gamma)
    own_sizes = op.Mul(op.ReduceSum(op.Mul(x, x), [1], keepdims=1), gamma)
    return op.Exp(op.Sub(op.Sub(scaled, sizes), own_sizes))


def unit_rows(op: GraphBuilder, x: str, norm: str = "l2") -> str:
    """Return rows divided by their norms, ``"l1"``, ``"l2"`` or ``"max"``; rows of zeros as they are."""
    if norm == "l2":
        squares = op.ReduceSumSquare(x, [1], keepdims=1)
        return op.Div(x, op.Sqrt(op.Where(op.Equal(squares, 0.0), 1.0, squares)))
    size = op.node("ReduceSum" if norm == "l1" else "ReduceMax", op.Abs(x), [1], keepdims=1)
    return op.Div(x, op.Where(op.Equal(size, 0.0), 1.0, size))


def remote_centre(rows: np.ndarray) -> np.ndarray | None:
    """Return the mean of rows farther from zero than apart, whose squares lose digits, None for others."""
    centre = rows.mean(axis=0)
    is_far = np.square(centre).sum() > np.square(rows - centre).sum(axis=1).mean()
    return centre if is_far else None
