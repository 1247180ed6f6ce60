"""Gaussian mixtures: log-likelihoods of samples, and probabilities of components."""

from typing import Any

import numpy as np
from scipy.special import digamma

from ...losses import BaseLoss, RowObjective
from ..base import ModelDefinition
from ..constraints.sets import Simplex, Triangular
from ..constraints.signs import Positive
from ..forms import Logarithm
from ..scores import Scores
from ..writer import ModelWriter


class GaussianMixtureDefinition(ModelDefinition):
    """GaussianMixture: ``log sum_k w_k N(x; m_k, (P_k P_k')^-1)``, P the Cholesky factors of precisions."""

    # Bishop, "Pattern Recognition and Machine Learning", 2006, equation 9.14
    loss: type[BaseLoss] | None = RowObjective

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        squares, log_det = _mahalanobis(op, model, x)
        densities = op.Add(op.Mul(squares, -0.5), op.Add(log_det, self._log_weights(op, model)))
        likelihood = op.ReduceLogSumExp(densities, [1], keepdims=1)
        outputs: dict[str, Any] = {"label": op.ArgMax(densities, axis=1, keepdims=0)}
        outputs |= {"probabilities": op.Softmax(densities, axis=1), "likelihood": likelihood}
        return Scores("unsupervised", op.Neg(likelihood), 1, averaged=True, **outputs)

    def _log_weights(self, op: ModelWriter, model: Any) -> str:
        """Return the logarithms of the weights and of the common factor of all densities."""
        shared = np.array(-0.5 * model.means_.shape[1] * np.log(2 * np.pi), dtype=op.float_dtype)
        if len(model.means_) == 1:
            return op.constant(shared)
        constraint = Simplex(logarithm=True)
        weights = op.parameter(model, "weights_", form=Logarithm(), role="intercept", constraint=constraint)
        return op.Add(weights, shared)

    def finish(self, model: Any) -> None:
        cholesky = model.precisions_cholesky_
        if model.covariance_type in ("diag", "spherical"):
            model.precisions_ = np.square(cholesky)
            model.covariances_ = 1 / model.precisions_
        else:
            model.precisions_ = cholesky @ np.swapaxes(cholesky, -1, -2)
            model.covariances_ = np.linalg.inv(model.precisions_)


class BayesianGaussianMixtureDefinition(GaussianMixtureDefinition):
    """BayesianGaussianMixture: a mixture with expected log-densities (Bishop, equations 10.65 and 10.66)."""

    loss = None  # the evidence lower bound also has divergences from the prior

    def _log_weights(self, op: ModelWriter, model: Any) -> str:
        n_columns, freedom = model.means_.shape[1], model.degrees_of_freedom_
        halves = 0.5 * (freedom - np.arange(n_columns)[:, np.newaxis])
        log_lambda = n_columns * np.log(2.0) + digamma(halves).sum(axis=0)
        spread = np.log(freedom) + np.log(2 * np.pi) + 1 / model.mean_precision_
        constant = model._estimate_log_weights() + 0.5 * (log_lambda - n_columns * spread)
        return op.constant(constant.astype(op.float_dtype))


def _mahalanobis(op: ModelWriter, model: Any, x: str) -> tuple[str, str]:
    """Return ``|(x - m_k) P_k|^2`` of shape (n, n_components), and ``log det P_k``."""
    kind = model.covariance_type
    means = op.parameter(model, "means_", role="intercept")
    triangular = kind in ("full", "tied")
    # The likelihood is unbounded as a variance vanishes: variances stay above half of reg_covar.
    is_bounded = model.reg_covar > 0 and not hasattr(model, "degrees_of_freedom_")
    high = float(np.sqrt(2 / model.reg_covar)) if is_bounded else None
    options: Any = {"role": "scale", "constraint": Positive(high=high)}
    if triangular:
        options = {"role": "weight", "constraint": Triangular(high)}
    cholesky = op.parameter(model, "precisions_cholesky_", **options)
    if triangular:
        # centred, as products of large values lose digits
        centre = model.means_.mean(axis=0).astype(op.float_dtype)
        x, means = op.Sub(x, centre), op.Sub(means, centre)
        if kind == "full":
            whitened = _full_product(op, x, means, cholesky, model.means_.shape)
        else:
            whitened = op.Sub(op.Unsqueeze(op.MatMul(x, cholesky), [1]), op.MatMul(means, cholesky))
        identity = np.eye(len(centre), dtype=op.float_dtype)
        logarithms = op.Log(op.ReduceSum(op.Mul(cholesky, identity), [-1], keepdims=0))
    else:
        factors = op.Unsqueeze(cholesky, [1]) if kind == "spherical" else cholesky
        whitened = op.Mul(op.Sub(op.Unsqueeze(x, [1]), means), factors)
        logarithms = op.Log(cholesky)
    if kind == "spherical":
        log_det = op.Mul(logarithms, float(model.means_.shape[1]))
    else:
        log_det = op.ReduceSum(logarithms, [-1], keepdims=0)
    return op.ReduceSum(op.Mul(whitened, whitened), [2], keepdims=0), log_det


def _full_product(op: ModelWriter, x: str, means: str, cholesky: str, shape: tuple[int, int]) -> str:
    """Return ``(x - m_k) P_k`` of shape (n, n_components, n_features), by one matrix product."""
    n_components, n_columns = shape
    side_by_side = op.Reshape(op.Transpose(cholesky, perm=[1, 0, 2]), [n_columns, n_components * n_columns])
    offsets = op.ReduceSum(op.Mul(op.Unsqueeze(means, [2]), cholesky), [1], keepdims=0)
    return op.Sub(op.Reshape(op.MatMul(x, side_by_side), [-1, n_components, n_columns]), offsets)
