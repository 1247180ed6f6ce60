"""Kernel density estimation: log-densities of samples."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import ModelDefinition
from ..constraints.signs import Positive
from ..parameters import Access
from ..scores import Scores
from ..writer import ModelWriter
from .neighbors import METRICS, ordered_distances

TOPHAT_REASON = "it only selects the samples within the bandwidth, a step function with zero gradient"
BANDWIDTH = "the likelihood of training samples grows without bound as it shrinks"
INFINITE_SUPPORT = frozenset(("exponential", "gaussian"))  # kernels written as logarithms


class TreeSamples(Access):
    """Access to the training samples in a tree."""

    def read(self, owner: Any) -> np.ndarray:
        return np.array(owner.tree_.data)

    def write(self, owner: Any, value: np.ndarray) -> None:
        weights = owner.tree_.sample_weight
        options = {"leaf_size": owner.leaf_size, "metric": owner.metric, **(owner.metric_params or {})}
        weights = None if weights is None else np.array(weights)
        owner.tree_ = type(owner.tree_)(value, sample_weight=weights, **options)


class KernelDensityDefinition(ModelDefinition):
    """KernelDensity: ``log(sum_j w_j k(d(x, x_j) / h) / (sum_j w_j h^n_features c))``."""

    # h is the bandwidth, w the sample weights, c the integral of the kernel k (Silverman, B. W., "Density
    # estimation for statistics and data analysis", 1986, section 4.2)
    untrained = "it counts samples within the bandwidth, a step function with zero gradient"

    def covers(self, model: Any) -> bool:
        power = (model.metric_params or {}).get("p", 2)
        return model.metric in METRICS and power >= 1

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        reason = TOPHAT_REASON if model.kernel == "tophat" else ""
        rows = op.parameter(
            model, "tree_.data", name="rows", role="intercept", reason=reason, access=TreeSamples()
        )
        width = op.parameter(model, "bandwidth_", role="scale", constraint=Positive(), reason=BANDWIDTH)
        ordered, finished = ordered_distances(op, x, rows, model.metric, model.metric_params or {})
        terms = KERNELS[model.kernel](op, op.Div(finished(ordered), width))
        n_samples, n_columns = model.tree_.data.shape
        weights = model.tree_.sample_weight
        weights = np.full(n_samples, 1.0) if weights is None else np.array(weights)
        shares = weights / weights.sum()
        scale = op.Mul(op.Log(width), float(n_columns))
        constant = op.Add(scale, _log_integral(op, model))
        if model.kernel in INFINITE_SUPPORT:
            with np.errstate(divide="ignore"):  # samples of weight zero
                terms = op.Add(terms, np.log(shares).astype(op.float_dtype))
            likelihood = op.Sub(op.ReduceLogSumExp(terms, [1], keepdims=1), constant)
            return Scores("unsupervised", op.Neg(likelihood), 1, likelihood=likelihood)
        density = op.MatMul(terms, shares[:, np.newaxis].astype(op.float_dtype))
        tiny = float(np.finfo(op.float_dtype).tiny)
        score = op.Sub(constant, op.Log(op.Max(density, tiny)))
        return Scores("unsupervised", score, 1, likelihood=op.Sub(op.Log(density), constant))


def _within(op: ModelWriter, ratio: str, values: str) -> str:
    """Append values within the bandwidth, zeros elsewhere."""
    return op.Where(op.Less(ratio, 1.0), values, 0.0)


#: Kernels of a distance divided by the bandwidth; log-kernels if the support is infinite.
KERNELS: dict[str, Callable[[ModelWriter, str], str]] = {
    "cosine": lambda op, u: _within(op, u, op.Sin(op.Mul(op.Sub(1.0, u), math.pi / 2))),
    "epanechnikov": lambda op, u: _within(op, u, op.Sub(1.0, op.Mul(u, u))),
    "exponential": lambda op, u: op.Neg(u),
    "gaussian": lambda op, u: op.Mul(op.Mul(u, u), -0.5),
    "linear": lambda op, u: _within(op, u, op.Sub(1.0, u)),
    "tophat": lambda op, u: op.ones_where(op.Less(u, 1.0)),
}


def _log_integral(op: ModelWriter, model: Any) -> float:
    """Return the log of the integral of a kernel of bandwidth one, as scikit-learn computes it."""
    tree = model.tree_
    point = np.zeros((1, tree.data.shape[1]))
    tree_of_one = type(tree)(point, metric=model.metric, **(model.metric_params or {}))
    density = float(tree_of_one.kernel_density(point, h=1.0, kernel=model.kernel, rtol=0, return_log=True)[0])
    if not math.isfinite(density):
        reason = f"scikit-learn cannot normalise the kernel {model.kernel!r} of {point.size} features"
        raise op.fail(model, f"{reason}: use another kernel.")
    return -density
