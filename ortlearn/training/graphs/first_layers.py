"""Products of features with trained weights, and moments of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, helper
from scipy.sparse import issparse

from ...graphs.view import GraphView
from .task import TrainingTask

__all__ = ["FirstLayer", "Moments", "first_layers", "is_product", "moments"]

#: Standard deviation relative to the mean below which columns are constant up to rounding.
CONSTANT = 1e-6
#: Samples per chunk for moments, so that X is not copied.
CHUNK = 8192


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


class Moments:
    """Moments of columns that are read in chunks; for one chunk, bitwise those of :func:`moments`.

    Two chunks are merged as in Chan, T. F., Golub, G. H. and LeVeque, R. J., "Algorithms for computing the
    sample variance", The American Statistician 37 (1983), 242-247.
    """

    def __init__(self) -> None:
        self._total = 0.0
        self._centred: tuple[np.ndarray, np.ndarray] | None = None
        self._around_zero: tuple[np.ndarray, np.ndarray] | None = None

    def add(self, features: Any, sample_weight: np.ndarray | None) -> None:
        """Add a chunk."""
        added = float(features.shape[0] if sample_weight is None else sample_weight.sum(dtype=np.float64))
        if not added > 0:
            return
        found = Moments()
        found._total = added
        found._centred = _mean_and_variance(features, sample_weight, True)
        found._around_zero = _mean_and_variance(features, sample_weight, False)
        self.merge(found)

    def merge(self, other: Moments) -> None:
        """Add the moments of other chunks."""
        if other._centred is None or other._around_zero is None:
            return
        total, (mean, variance), squares = self._total + other._total, other._centred, other._around_zero
        share = other._total / total
        if self._centred is None or self._around_zero is None:
            self._centred, self._around_zero = (mean, variance), squares
        else:
            step = mean - self._centred[0]
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
