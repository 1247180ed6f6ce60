"""Features pooled by clusters."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .base import ModelDefinition
from .scores import Scores, joined, transformation
from .writer import ModelWriter


def _mean(op: ModelWriter, group: str, size: int) -> str:
    return op.ReduceMean(group, [1], keepdims=1)


def _sum(op: ModelWriter, group: str, size: int) -> str:
    return op.ReduceSum(group, [1], keepdims=1)


def _largest(op: ModelWriter, group: str, size: int) -> str:
    return op.ReduceMax(group, [1], keepdims=1)


def _least(op: ModelWriter, group: str, size: int) -> str:
    return op.ReduceMin(group, [1], keepdims=1)


def _median(op: ModelWriter, group: str, size: int) -> str:
    half = size // 2 + 1
    lower = op.TopK(group, [half], axis=1, largest=0, n_outputs=2)[0]
    middle = op.Slice(lower, [half - 2 + size % 2], [half], [1])
    return op.ReduceMean(middle, [1], keepdims=1)


#: Pooling functions that have a form in ONNX.
POOLING: dict[Callable[..., Any], Callable[[ModelWriter, str, int], str]] = {
    np.mean: _mean,
    np.sum: _sum,
    np.max: _largest,
    np.min: _least,
    np.median: _median,
}


class FeatureAgglomerationDefinition(ModelDefinition):
    """FeatureAgglomeration: the mean, or another function, of the features of each cluster."""

    untrained = "it learns which features are alike, no numbers"

    def covers(self, model: Any) -> bool:
        return model.pooling_func in POOLING

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        pooled = POOLING[model.pooling_func]
        groups = [np.flatnonzero(model.labels_ == label) for label in np.unique(model.labels_)]
        columns = [pooled(op, op.Gather(x, group, axis=1), len(group)) for group in groups]
        return transformation(op, joined(op, columns), len(columns))
