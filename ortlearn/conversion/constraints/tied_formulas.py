"""What converters compute from fitted attributes and store, written as ONNX: one formula a line.

The formulas are those of the log densities that scikit-learn documents: naive Bayes with normal
densities, ``-1/2 sum_j log(2 pi v_j)``; mixtures, ``y = x P - m P`` with ``P P' `` the precision and
``log det P`` the sum of the logarithms of its diagonal; distances, ``|x - c|^2 = |x|^2 - 2 x c' + |c|^2``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...graphs import GraphBuilder

__all__ = ["FORMULAS", "Formula"]


@dataclass(frozen=True)
class Formula:
    """Something that follows from attributes of an estimator.

    Attributes
    ----------
    attributes : tuple of str
        What it is computed from.
    write : callable
        ``write(op, *names)`` appends the nodes and returns the name of the result.
    """

    attributes: tuple[str, ...]
    write: Callable[..., str]


def _itself(op: GraphBuilder, values: str) -> str:
    return op.Identity(values)


def _transposed(op: GraphBuilder, values: str) -> str:
    return op.Transpose(values, perm=[1, 0])


def _kmeans(estimator: Any) -> list[Formula]:
    centers = ("cluster_centers_",)
    return [
        Formula(centers, _itself),
        Formula(centers, lambda op, c: op.ReduceSum(op.Mul(c, c), [1], keepdims=0)),
    ]


def _gaussian_nb(estimator: Any) -> list[Formula]:
    def log_factor(op: GraphBuilder, variances: str) -> str:
        logs = op.Log(op.Mul(variances, 2 * np.pi))
        return op.Mul(op.ReduceSum(logs, [1], keepdims=0), -0.5)

    return [Formula(("var_",), _itself), Formula(("var_",), log_factor)]


def _ada_boost(estimator: Any) -> list[Formula]:
    weights = ("estimator_weights_",)
    one = [
        Formula(weights, lambda op, w, i=i: op.Gather(w, [i], axis=0))
        for i in range(len(estimator.estimators_))
    ]
    return [*one, Formula(weights, lambda op, w: op.ReduceSum(w, keepdims=0))]


def _mixture(estimator: Any) -> list[Formula]:
    return MIXTURES[estimator.covariance_type](*estimator.means_.shape)


BOTH = ("means_", "precisions_cholesky_")
CHOLESKY = ("precisions_cholesky_",)


def _row(op: GraphBuilder, values: str, number: int) -> str:
    return op.Gather(values, [number], axis=0)


def _log_diagonal(op: GraphBuilder, cholesky: str, n_columns: int) -> str:
    diagonal = op.ReduceSum(op.Mul(cholesky, np.eye(n_columns, dtype=op.float_dtype)), [-1], keepdims=0)
    return op.ReduceSum(op.Log(diagonal), [-1], keepdims=0)


def _full(n_components: int, n_columns: int) -> list[Formula]:
    def cholesky(op: GraphBuilder, p: str, number: int) -> str:
        return op.Squeeze(_row(op, p, number), [0])

    def offset(op: GraphBuilder, m: str, p: str, number: int) -> str:
        return op.Neg(op.MatMul(_row(op, m, number), cholesky(op, p, number)))

    of_components = [
        formula
        for i in range(n_components)
        for formula in (
            Formula(CHOLESKY, lambda op, p, i=i: cholesky(op, p, i)),
            Formula(BOTH, lambda op, m, p, i=i: offset(op, m, p, i)),
        )
    ]
    return [*of_components, Formula(CHOLESKY, lambda op, p: _log_diagonal(op, p, n_columns))]


def _tied(n_components: int, n_columns: int) -> list[Formula]:
    offsets = [
        Formula(BOTH, lambda op, m, p, i=i: op.Neg(op.MatMul(_row(op, m, i), p))) for i in range(n_components)
    ]
    log_det = Formula(CHOLESKY, lambda op, p: _log_diagonal(op, p, n_columns))
    return [Formula(CHOLESKY, _itself), *offsets, log_det]


def _diagonal(n_components: int, n_columns: int) -> list[Formula]:
    def squares(op: GraphBuilder, m: str, p: str) -> str:
        whitened = op.Mul(m, p)
        return op.ReduceSum(op.Mul(whitened, whitened), [1], keepdims=0)

    return [
        Formula(CHOLESKY, lambda op, p: _transposed(op, op.Mul(p, p))),
        Formula(BOTH, lambda op, m, p: _transposed(op, op.Mul(m, op.Mul(p, p)))),
        Formula(BOTH, squares),
        Formula(CHOLESKY, lambda op, p: op.ReduceSum(op.Log(p), [1], keepdims=0)),
    ]


def _spherical(n_components: int, n_columns: int) -> list[Formula]:
    def squares(op: GraphBuilder, m: str, p: str) -> str:
        return op.Mul(op.ReduceSum(op.Mul(m, m), [1], keepdims=0), op.Mul(p, p))

    return [
        Formula(CHOLESKY, lambda op, p: op.Mul(p, p)),
        Formula(BOTH, lambda op, m, p: op.Mul(_transposed(op, m), op.Mul(p, p))),
        Formula(BOTH, squares),
        Formula(CHOLESKY, lambda op, p: op.Mul(op.Log(p), float(n_columns))),
    ]


MIXTURES: dict[str, Callable[[int, int], list[Formula]]] = {
    "full": _full,
    "tied": _tied,
    "diag": _diagonal,
    "spherical": _spherical,
}
#: Formulas of an estimator, by name of its class.
FORMULAS: dict[str, Callable[[Any], list[Formula]]] = {
    "AdaBoostClassifier": _ada_boost,
    "BayesianGaussianMixture": _mixture,
    "GaussianMixture": _mixture,
    "GaussianNB": _gaussian_nb,
    "KMeans": _kmeans,
    "MiniBatchKMeans": _kmeans,
}
