"""Products of features with trained weights, and moments of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, helper
from scipy.sparse import issparse

from ...graphs.view import GraphView
from .task import TrainingTask

__all__ = ["MOST_FEATURES", "FirstLayer", "Moments", "covariance", "first_layers", "is_product", "moments"]

#: Standard deviation relative to the mean below which columns are constant up to rounding.
CONSTANT = 1e-6
#: Samples per chunk for moments, so that X is not copied.
CHUNK = 8192
#: Most features, and most samples of a chunk, by which covariances are estimated.
MOST_FEATURES, MOST_SAMPLES = 256, 4096


@dataclass(frozen=True)
class FirstLayer:
    """A trained weight that multiplies features, and the intercept that is added."""

    features: str  # input of shape (n, d)
    weight: str  # weight of shape (d, k)
    intercept: str | None  # weight of k elements; None if no trained weight is added
    is_only_reader: bool  # whether no other node reads the features


def first_layers(task: TrainingTask) -> list[FirstLayer]:
    """Return the products of features with trained weights that no other node reads."""
    view, found = GraphView(task.graph.model), []
    for node in view.nodes:
        if not is_product(node) or node.input[0] not in task.graph.features:
            continue
        weight = node.input[1]
        if weight in task.graph.intercepts and len(view.readers[weight]) == 1:
            is_only_reader = len(view.readers[node.input[0]]) == 1
            found.append(FirstLayer(node.input[0], weight, _intercept(view, node, task), is_only_reader))
    return found


def is_product(node: NodeProto) -> bool:
    """Return whether a node is a MatMul, or a Gemm without transposition or scaling."""
    if node.op_type != "Gemm":
        return node.op_type == "MatMul"
    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return all(values.get(name, 1) == 1 for name in ("alpha", "beta")) and not any(
        values.get(name) for name in ("transA", "transB")
    )


def _intercept(view: GraphView, product: NodeProto, task: TrainingTask) -> str | None:
    """Return the trained weight that is added to a product and not used elsewhere, or None."""
    if product.op_type == "Gemm" and len(product.input) > 2:
        added = [product.input[2]]
    else:
        readers = view.readers.get(product.output[0], [])
        if len(readers) != 1 or readers[0].op_type != "Add":
            return None
        added = [name for name in readers[0].input if name != product.output[0]]
    trained = [name for name in added if name in task.graph.intercepts and len(view.readers[name]) == 1]
    return trained[0] if trained else None


def moments(features: Any, sample_weight: np.ndarray | None, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each column, or zero and root mean square if not centred."""
    mean, variance = _mean_and_variance(features, sample_weight, centred)
    return mean, _spread(variance, mean)


def covariance(features: Any, sample_weight: np.ndarray | None, mean: np.ndarray) -> np.ndarray:
    """Return the covariances of columns around means, of at most ``MOST_SAMPLES`` samples."""
    some = slice(None, None, max(1, -(-features.shape[0] // MOST_SAMPLES)))
    part = features[some].astype(np.float64)
    shares = np.ones(part.shape[0]) if sample_weight is None else sample_weight[some].astype(np.float64)
    shares = shares / (shares.sum() or 1.0)
    if not issparse(part):
        away = part - mean
        return (away.T * shares) @ away
    products, found = (part.multiply(shares[:, np.newaxis]).T @ part).tocoo(), np.zeros(2 * mean.shape)
    found[products.row, products.col] = products.data
    crossed = np.outer(mean, shares @ part)
    return found - crossed - crossed.T + np.outer(mean, mean) * shares.sum()


class Moments:
    """Moments of columns that are read in chunks; for one chunk, bitwise those of :func:`moments`.

    Two chunks are merged as in Chan, T. F., Golub, G. H. and LeVeque, R. J., "Algorithms for computing the
    sample variance", The American Statistician 37 (1983), 242-247.
    """

    def __init__(self) -> None:
        self._total = 0.0
        self._centred: tuple[np.ndarray, np.ndarray] | None = None
        self._around_zero: tuple[np.ndarray, np.ndarray] | None = None
        self._covariances: tuple[np.ndarray, np.ndarray] | None = None  # centred, and around zero

    def add(self, features: Any, sample_weight: np.ndarray | None) -> None:
        """Add a chunk."""
        added = float(features.shape[0] if sample_weight is None else sample_weight.sum(dtype=np.float64))
        if not added > 0:
            return
        found = Moments()
        found._total = added
        found._centred = _mean_and_variance(features, sample_weight, True)
        found._around_zero = _mean_and_variance(features, sample_weight, False)
        if features.shape[1] <= MOST_FEATURES:
            means = found._centred[0], found._around_zero[0]
            centred, plain = (covariance(features, sample_weight, mean) for mean in means)
            found._covariances = centred, plain
        self.merge(found)

    def merge(self, other: Moments) -> None:
        """Add the moments of other chunks."""
        if other._centred is None or other._around_zero is None:
            return
        total, (mean, variance), squares = self._total + other._total, other._centred, other._around_zero
        share = other._total / total
        if self._centred is None or self._around_zero is None:
            self._centred, self._around_zero = (mean, variance), squares
            self._covariances = other._covariances
        else:
            step = mean - self._centred[0]
            if self._covariances is not None and other._covariances is not None:
                pairs = zip(self._covariances, other._covariances, strict=True)
                centred, plain = (own + (added - own) * share for own, added in pairs)
                self._covariances = centred + np.outer(step, step) * share * (1 - share), plain
            merged = self._centred[1] + (variance - self._centred[1]) * share + step**2 * share * (1 - share)
            self._centred = self._centred[0] + step * share, merged
            before = self._around_zero[1]
            self._around_zero = squares[0], before + (squares[1] - before) * share
        self._total = total

    @property
    def mean_and_variance(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each column."""
        assert self._centred is not None
        return self._centred

    def covariance(self, centred: bool) -> np.ndarray | None:
        """Return the result of :func:`covariance` for all chunks; None for many features."""
        return None if self._covariances is None else self._covariances[0 if centred else 1]

    def result(self, centred: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the result of :func:`moments` for all chunks."""
        found = self._centred if centred else self._around_zero
        assert found is not None
        return found[0], _spread(found[1], found[0])


def _mean_and_variance(
    features: Any, sample_weight: np.ndarray | None, centred: bool
) -> tuple[np.ndarray, np.ndarray]:
    if issparse(features):
        n_samples = features.shape[0]
        shares = np.ones(n_samples) if sample_weight is None else sample_weight.astype(np.float64)
        shares = shares / shares.sum()
        squares = np.asarray(shares @ features.multiply(features).astype(np.float64)).ravel()
        mean = np.asarray(shares @ features.astype(np.float64)).ravel() if centred else np.zeros(len(squares))
        return mean, squares - mean**2
    weights = np.ones(len(features)) if sample_weight is None else sample_weight.astype(np.float64)
    mean, chunks = np.zeros(features.shape[1]), range(0, len(features), CHUNK)
    if centred:
        for samples in (slice(start, start + CHUNK) for start in chunks):
            mean += weights[samples] @ features[samples].astype(np.float64)
        mean /= weights.sum()
    squares = np.zeros(features.shape[1])
    for samples in (slice(start, start + CHUNK) for start in chunks):
        squares += weights[samples] @ (features[samples] - mean) ** 2
    return mean, squares / weights.sum()


def _spread(variance: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return standard deviations, zero for columns that are constant up to rounding."""
    spread = np.sqrt(np.maximum(variance, 0.0))
    spread[spread <= CONSTANT * np.abs(mean)] = 0.0
    return spread
