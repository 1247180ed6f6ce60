"""Clustering, Gaussian mixtures and kernel density estimation."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import digamma

from ..losses import BaseLoss, RowObjective
from .base import ModelDefinition
from .constraints.sets import Simplex, Triangular
from .constraints.signs import Positive
from .distances import guarded_sqrt, pairwise_distances
from .forms import Logarithm
from .neighbors import METRICS, ordered_distances
from .parameters import Access
from .scores import Scores
from .writer import ModelWriter


class CentersDefinition(ModelDefinition):
    """MeanShift, and base of models with centres: the loss is the squared distance to the nearest centre."""

    centers = "cluster_centers_"  # name of the attribute

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        centers = op.parameter(model, self.centers, role="weight")
        squares = pairwise_distances(op, x, centers, "sqeuclidean")
        chosen = self.chosen(op, model, x, squares)  # not differentiated
        score, label = op.GatherElements(squares, chosen, axis=1), op.Squeeze(chosen, [1])
        transformed = guarded_sqrt(op, squares, op.float_dtype) if hasattr(model, "transform") else None
        label = self.label(op, model, label)
        return Scores("unsupervised", score, 1, label=label, transformed=transformed)

    def chosen(self, op: ModelWriter, model: Any, x: str, squares: str) -> str:
        """Append the index of the centre of each sample, of shape (n, 1)."""
        return op.ArgMin(squares, axis=1, keepdims=1)

    def label(self, op: ModelWriter, model: Any, number: str) -> str:
        """Append the label of a centre."""
        return number


class KMeansDefinition(CentersDefinition):
    """KMeans and MiniBatchKMeans: the nearest centre (Lloyd, "Least squares quantization in PCM", 1982)."""

    loss: type[BaseLoss] | None = RowObjective


class AffinityPropagationDefinition(CentersDefinition):
    """AffinityPropagation: the nearest exemplar; training moves exemplars freely."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        if not hasattr(model, "cluster_centers_"):
            raise op.fail(model, "it has no predict with precomputed affinities: fit it on features.")
        if not len(model.cluster_centers_):
            reason = "it has no centres, as its fit did not converge: increase max_iter or damping."
            raise op.fail(model, reason)
        return super().write(op, model, x)


class BirchDefinition(CentersDefinition):
    """Birch: the cluster of the nearest subcluster; training does not update the tree of partial_fit."""

    centers = "subcluster_centers_"

    def label(self, op: ModelWriter, model: Any, number: str) -> str:
        return op.Gather(np.asarray(model.subcluster_labels_, dtype=np.int64), number, axis=0)

    def finish(self, model: Any) -> None:
        model._subcluster_norms = np.square(model.subcluster_centers_).sum(axis=1)


class BisectingKMeansDefinition(KMeansDefinition):
    """BisectingKMeans: prediction by a tree of clusters, of which the centres of leaves are trained."""

    def chosen(self, op: ModelWriter, model: Any, x: str, squares: str) -> str:
        nodes = list(_inner_nodes(model._bisecting_tree))
        if not nodes:
            return op.ArgMin(squares, axis=1, keepdims=1)
        n_clusters, shift = len(model.cluster_centers_), getattr(model, "_X_mean", 0.0)
        parts = [child for node in nodes for child in (node.left, node.right)]
        inner = [child.center + shift for child in parts if child.left is not None]
        if inner:
            others = op.constant(np.array(inner, dtype=op.float_dtype))
            squares = op.Concat(squares, pairwise_distances(op, x, others, "sqeuclidean"), axis=1)
        numbers = iter(range(n_clusters, n_clusters + len(inner)))
        columns = [child.label if child.left is None else next(numbers) for child in parts]
        left, right = (op.Gather(squares, columns[side::2], axis=1) for side in (0, 1))
        turns = op.Sub(op.Mul(op.ones_where(op.LessOrEqual(left, right)), 2.0), 1.0)
        paths = np.zeros((len(nodes), n_clusters), dtype=op.float_dtype)
        for row, node in enumerate(nodes):
            paths[row, [leaf.label for leaf in node.left.iter_leaves()]] = 1
            paths[row, [leaf.label for leaf in node.right.iter_leaves()]] = -1
        # zero for the leaf whose path agrees with all turns of a sample, negative for others
        agreement = op.Sub(op.MatMul(turns, paths), np.abs(paths).sum(axis=0))
        return op.ArgMax(agreement, axis=1, keepdims=1)

    def finish(self, model: Any) -> None:
        shift = getattr(model, "_X_mean", 0.0)
        for leaf in model._bisecting_tree.iter_leaves():
            leaf.center = model.cluster_centers_[leaf.label] - shift


def _inner_nodes(node: Any) -> Iterator[Any]:
    """Yield the inner nodes of a tree of clusters, in preorder."""
    if node.left is not None:
        yield node
        yield from _inner_nodes(node.left)
        yield from _inner_nodes(node.right)


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


TOPHAT_REASON = "it only selects the samples within the bandwidth, a step function with zero gradient"
BANDWIDTH = "the likelihood of training samples grows without bound as it shrinks"
INFINITE_SUPPORT = frozenset(("exponential", "gaussian"))  # kernels written as logarithms


class _Rows(Access):
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
        rows = op.parameter(model, "tree_.data", name="rows", role="intercept", reason=reason, access=_Rows())
        width = op.parameter(model, "bandwidth_", role="scale", constraint=Positive(), reason=BANDWIDTH)
        ordered, finished = ordered_distances(op, x, rows, model.metric, model.metric_params or {})
        terms = KERNELS[model.kernel](op, op.Div(finished(ordered), width))
        n_rows, n_columns = model.tree_.data.shape
        weights = model.tree_.sample_weight
        weights = np.full(n_rows, 1.0) if weights is None else np.array(weights)
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
