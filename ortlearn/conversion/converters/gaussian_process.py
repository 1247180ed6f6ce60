"""Gaussian processes: every kernel of scikit-learn but those without a form in ONNX, several classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto
from sklearn.gaussian_process import _gpc

from ...exceptions import ConversionError
from ...graphs import GraphBuilder
from .kernels import Rows, kernel_diagonal, kernel_matrix
from .writing import add_nodes, add_weight, start, write_as

__all__ = ["convert_classifier", "convert_regressor"]


def convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    """Write the mean of a Gaussian process: ``K(X, X_train_) alpha_``, scaled and shifted as y was.

    Rasmussen, C. E. and Williams, C. K. I., "Gaussian Processes for Machine Learning", MIT Press 2006,
    algorithm 2.1, line 4.
    """
    process = operator.raw_operator
    op, x = start(scope, operator)
    alpha = process.alpha_.reshape(len(process.alpha_), -1)
    rows = Rows(op, process.X_train_)
    mean = op.MatMul(
        _full(op, kernel_matrix(op, process.kernel_, x, rows), x, rows), add_weight(op, "alpha", alpha)
    )
    if process.normalize_y:
        mean = op.Mul(mean, add_weight(op, "y_train_std", np.atleast_1d(process._y_train_std)))
    mean = op.Add(mean, add_weight(op, "y_train_mean", np.atleast_1d(process._y_train_mean)))
    write_as(op, mean, operator.outputs[0])
    add_nodes(container, op)


def convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Write the label and the probabilities of a Gaussian process, one process for each class of several."""
    classifier = operator.raw_operator
    op, x = start(scope, operator)
    members = getattr(classifier.base_estimator_, "estimators_", None)
    if members is None:
        latent, positive = _binary(op, classifier.base_estimator_, x)
        best = op.Squeeze(op.Cast(op.Greater(latent, 0.0), to=TensorProto.INT64), [1])
        probabilities = op.Concat(op.Sub(1.0, positive), positive, axis=1)
    elif classifier.multi_class != "one_vs_rest":
        raise ConversionError("multi_class='one_vs_one' gives no probabilities: use 'one_vs_rest'.")
    else:
        positives = op.Concat(*(_binary(op, member, x)[1] for member in members), axis=1)
        best = op.ArgMax(positives, axis=1, keepdims=0)
        probabilities = op.Div(positives, op.ReduceSum(positives, [1]))
    classes = np.asarray(classifier.classes_)
    table = classes.astype(object if classes.dtype.kind in "OUS" else np.int64)
    op.node("Gather", op.constant(table), best, axis=0, outputs=[operator.outputs[0].full_name])
    write_as(op, probabilities, operator.outputs[1])
    add_nodes(container, op)


def _full(op: GraphBuilder, matrix: str, x: str, rows: Rows) -> str:
    """Return a kernel with one row for each of X, which a constant one has not."""
    count = op.Slice(op.Shape(x), [0], [1])
    return op.Expand(matrix, op.Concat(count, [len(rows.values)], axis=0))


def _binary(op: GraphBuilder, process: Any, x: str) -> tuple[str, str]:
    """Write the latent mean of a process of two classes, and the probability of the second, columns.

    Rasmussen and Williams, algorithm 3.2: ``f = K (y - pi)``, ``v = L^-1 W^(1/2) K'``,
    ``s = k(x, x) - v v'``. The logistic function averaged over N(f, s) is, with that function written
    as ``sum c erf(l z) / 2 + sum c / 2`` (Williams, C. K. I. and Barber, D., "Bayesian classification
    with Gaussian processes", IEEE TPAMI 1998, appendix A), ``sum c erf(l f / sqrt(1 + 2 l^2 s)) / 2``
    plus the same constant.
    """
    rows = Rows(op, process.X_train_)
    kernel = _full(op, kernel_matrix(op, process.kernel_, x, rows), x, rows)
    residuals = (process.y_train_ - process.pi_)[:, None]
    latent = op.MatMul(kernel, add_weight(op, "residuals", residuals))
    factor = np.linalg.inv(process.L_) * process.W_sr_
    v = op.MatMul(kernel, add_weight(op, "factor", factor.T))
    variance = op.Max(op.Sub(kernel_diagonal(op, process.kernel_, x), op.ReduceSumSquare(v, [1])), 0.0)
    slopes, shares = (op.constant(np.ravel(c).astype(op.float_dtype)) for c in (_gpc.LAMBDAS, _gpc.COEFS))
    spread = op.Sqrt(op.Add(op.Mul(op.Mul(op.Mul(slopes, slopes), 2.0), variance), 1.0))
    terms = op.Mul(_erf(op, op.Div(op.Mul(latent, slopes), spread)), shares)
    total = op.Add(op.ReduceSum(terms, [1]), float(_gpc.COEFS.sum()))
    return latent, op.Mul(total, 0.5)


def _erf(op: GraphBuilder, x: str) -> str:
    if op.float_dtype == np.float32:
        return op.Erf(x)
    # onnxruntime has it in float32 only
    return op.Cast(op.Erf(op.Cast(x, to=TensorProto.FLOAT)), to=TensorProto.DOUBLE)
