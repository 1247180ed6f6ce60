"""Gaussian processes: means of posteriors, and probabilities of classes that average over them.

Rasmussen, C. E. and Williams, C. K. I., "Gaussian Processes for Machine Learning", MIT Press 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import TensorProto
from sklearn.gaussian_process import _gpc

from .base import ModelDefinition
from .constraints.signs import Positive
from .forms import Form, Reshaped
from .process_kernels import ProcessKernel
from .scores import Scores, classes_of_probabilities, decisions, joined, of_two_classes, regression
from .writer import ModelWriter

POSTERIOR = (
    "it follows from the samples and the other numbers of the fit, as the rest of the graph expects it"
)


class GaussianProcessRegressorDefinition(ModelDefinition):
    """GaussianProcessRegressor: ``K(X, X_train_) alpha_``, scaled and shifted as y was (algorithm 2.1)."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        kernel = ProcessKernel(op, model, x).matrix()
        n_outputs = model.alpha_.size // len(model.alpha_)
        mean = op.MatMul(kernel, op.parameter(model, "alpha_", form=Reshaped((-1, n_outputs)), role="weight"))
        flat = Reshaped((-1,))
        if model.normalize_y:
            std = op.parameter(model, "_y_train_std", form=flat, role="scale", constraint=Positive())
            mean = op.Mul(mean, std)
        mean = op.Add(mean, op.parameter(model, "_y_train_mean", form=flat, role="intercept"))
        return regression(op, mean, n_outputs)

    def finish(self, model: Any) -> None:
        # only deviations are computed from the factors of the kernel
        kernel = model.kernel_(model.X_train_)
        kernel[np.diag_indices_from(kernel)] += model.alpha
        model.L_ = np.linalg.cholesky(kernel)


@dataclass(frozen=True)
class _Residuals(Form):
    """Labels less their probabilities, of shape (n_rows, 1)."""

    labels: np.ndarray
    text = "y_train_ - {}"

    def forward(self, value: np.ndarray) -> np.ndarray:
        return (self.labels - value)[:, np.newaxis]

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return self.labels - value.reshape(like.shape)


class GaussianProcessClassifierDefinition(ModelDefinition):
    """GaussianProcessClassifier: one process for two classes, one for each of more."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        with op.inside("base_estimator_"):
            if len(model.classes_) == 2:
                return self._binary(op, model, x)
            if model.multi_class != "one_vs_rest":
                raise op.fail(model, "multi_class='one_vs_one' gives no probabilities: use 'one_vs_rest'.")
            return self._several(op, model, x)

    def _binary(self, op: ModelWriter, model: Any, x: str) -> Scores:
        latent, positive = _process(op, model.base_estimator_, x)
        probabilities = of_two_classes(op, positive)
        label = decisions(op, latent, model.classes_).label
        return replace(classes_of_probabilities(op, probabilities, model.classes_), label=label)

    def _several(self, op: ModelWriter, model: Any, x: str) -> Scores:
        positives = []
        for number, member in enumerate(model.base_estimator_.estimators_):
            with op.inside(f"estimators_[{number}]"):
                positives.append(_process(op, member, x)[1])
        shares = joined(op, positives)
        probabilities = op.Div(shares, op.ReduceSum(shares, [1]))
        return classes_of_probabilities(op, probabilities, model.classes_)


def _process(op: ModelWriter, process: Any, x: str) -> tuple[str, str]:
    """Append the latent mean of a process of two classes, and the probability of the second, columns.

    Rasmussen and Williams, algorithm 3.2: ``f = K (y - pi)``, ``v = L^-1 W^(1/2) K'``,
    ``s = k(x, x) - v v'``. The logistic function averaged over N(f, s) is, with that function written
    as ``sum c erf(l z) / 2 + sum c / 2`` (Williams, C. K. I. and Barber, D., "Bayesian classification
    with Gaussian processes", IEEE TPAMI 1998, appendix A), ``sum c erf(l f / sqrt(1 + 2 l^2 s)) / 2``
    plus the same constant.
    """
    writer = ProcessKernel(op, process, x, POSTERIOR)
    kernel = writer.matrix()
    residuals = op.parameter(process, "pi_", form=_Residuals(process.y_train_), role="weight")
    latent = op.MatMul(kernel, residuals)
    factor = (np.linalg.inv(process.L_) * process.W_sr_).T.astype(op.float_dtype)
    v = op.MatMul(kernel, np.ascontiguousarray(factor))
    variance = op.Max(op.Sub(writer.diagonal(), op.ReduceSumSquare(v, [1])), 0.0)
    slopes, shares = (np.ravel(c).astype(op.float_dtype) for c in (_gpc.LAMBDAS, _gpc.COEFS))
    spread = op.Sqrt(op.Add(op.Mul(variance, 2 * slopes * slopes), 1.0))
    terms = op.Mul(_erf(op, op.Div(op.Mul(latent, slopes), spread)), shares)
    total = op.Add(op.ReduceSum(terms, [1]), float(_gpc.COEFS.sum()))
    return latent, op.Mul(total, 0.5)


def _erf(op: ModelWriter, x: str) -> str:
    if op.float_dtype == np.float32:
        return op.Erf(x)
    # onnxruntime has it in float32 only
    return op.Cast(op.Erf(op.Cast(x, to=TensorProto.FLOAT)), to=TensorProto.DOUBLE)
