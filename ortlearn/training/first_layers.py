"""Products of features with trained weights, and the moments of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, helper
from scipy.sparse import issparse

from ..graphs.view import GraphView
from .task import TrainingTask

__all__ = ["FirstLayer", "first_layers", "moments"]

#: Columns whose standard deviation is below this share of their size are constant but for rounding.
CONSTANT = 1e-6
#: Rows of which moments are computed at once, so that X is not copied.
ROWS = 8192


@dataclass(frozen=True)
class FirstLayer:
    """A trained weight that features are multiplied with, and the intercept that is added.

    Attributes
    ----------
    features : str
        Input of shape (n, d).
    weight : str
        Weight of shape (d, k).
    intercept : str or None
        Weight of k elements; None where nothing that is trained is added.
    alone : bool
        Whether nothing else reads the features.
    """

    features: str
    weight: str
    intercept: str | None
    alone: bool


def first_layers(task: TrainingTask) -> list[FirstLayer]:
    """Return the products of features with trained weights that nothing else in the graph reads.

    Parameters
    ----------
    task : TrainingTask
        Graph, objective and update.

    Returns
    -------
    list of FirstLayer
        Layers, in the order of the graph.
    """
    view, found = GraphView(task.graph.model), []
    for node in view.nodes:
        if not _is_product(node) or node.input[0] not in task.graph.features:
            continue
        weight = node.input[1]
        if weight in task.graph.intercepts and len(view.readers[weight]) == 1:
            alone = len(view.readers[node.input[0]]) == 1
            found.append(FirstLayer(node.input[0], weight, _intercept(view, node, task), alone))
    return found


def _is_product(node: NodeProto) -> bool:
    if node.op_type != "Gemm":
        return node.op_type == "MatMul"
    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return all(values.get(name, 1) == 1 for name in ("alpha", "beta")) and not any(
        values.get(name) for name in ("transA", "transB")
    )


def _intercept(view: GraphView, product: NodeProto, task: TrainingTask) -> str | None:
    """Return the trained weight that is added to a product, and to nothing else."""
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
    """Return mean and standard deviation of each column; zero and root mean square if not centred.

    Parameters
    ----------
    features : ndarray or sparse matrix of shape (n_samples, n_features)
        Columns.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights of the samples.
    centred : bool
        Whether to subtract the mean.

    Returns
    -------
    mean, spread : ndarray of shape (n_features,), float64
        Both of each column; a spread of zero for columns that are constant.
    """
    if issparse(features):
        n_samples = features.shape[0]
        shares = np.ones(n_samples) if sample_weight is None else sample_weight.astype(np.float64)
        shares = shares / shares.sum()
        squares = np.asarray(shares @ features.multiply(features).astype(np.float64)).ravel()
        mean = np.asarray(shares @ features.astype(np.float64)).ravel() if centred else np.zeros(len(squares))
        return mean, _spread(squares - mean**2, mean)
    weights = np.ones(len(features)) if sample_weight is None else sample_weight.astype(np.float64)
    mean, chunks = np.zeros(features.shape[1]), range(0, len(features), ROWS)
    if centred:
        for rows in (slice(start, start + ROWS) for start in chunks):
            mean += weights[rows] @ features[rows].astype(np.float64)
        mean /= weights.sum()
    squares = np.zeros(features.shape[1])
    for rows in (slice(start, start + ROWS) for start in chunks):
        squares += weights[rows] @ (features[rows] - mean) ** 2
    return mean, _spread(squares / weights.sum(), mean)


def _spread(variance: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return standard deviations, zero for columns that are constant but for rounding."""
    spread = np.sqrt(np.maximum(variance, 0.0))
    spread[spread <= CONSTANT * np.abs(mean)] = 0.0
    return spread
