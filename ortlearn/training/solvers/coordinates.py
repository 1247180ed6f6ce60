"""Change of variables that standardises the features of a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ...data.samples import Data
from ...graphs import GraphBuilder
from ...penalties import BasePenalty
from ..graphs.first_layers import CHUNK, CONSTANT, FirstLayer, Moments, first_layers, moments
from ..graphs.task import TrainingTask

__all__ = ["Coordinates", "Scale"]


@dataclass(frozen=True)
class Scale:
    """Slices of a first layer in the vector of all weights, and moments of its features."""

    layer: FirstLayer
    weight: slice
    shape: tuple[int, int]  # shape of the weight
    intercept: slice | None  # None if it does not change
    mean: np.ndarray  # mean of the features, of shape (n_features,)
    spread: np.ndarray  # standard deviation of the features, including the curvature of the penalty


class _Stack:
    """Positions and moments of layers of equal shape (n_features, n_outputs), with n_layers as first axis."""

    def __init__(self, scales: list[Scale]) -> None:
        self.shape = (len(scales), *scales[0].shape)
        self.weights = _positions([scale.weight for scale in scales])
        intercepts = [scale.intercept for scale in scales if scale.intercept is not None]
        self.intercepts = _positions(intercepts) if intercepts else None
        self.mean = np.stack([scale.mean for scale in scales])[:, np.newaxis]
        self.spread = np.stack([scale.spread for scale in scales])[:, :, np.newaxis]


def _positions(slices: list[slice]) -> Any:
    """Return an index of the elements of all slices; one slice is its own index, which copies nothing."""
    return slices[0] if len(slices) == 1 else np.concatenate([np.r_[own] for own in slices])


class _ScaledPenalty(BasePenalty):
    """A penalty of weights, as a function of their coordinates."""

    def __init__(self, penalty: BasePenalty, lengths: Any, shifts: Any = None) -> None:
        super().__init__()
        self.penalty = penalty
        self.lengths = lengths
        self.shifts = shifts or {}

    def parts(self) -> list[BasePenalty]:
        return self.penalty.parts()

    def parts_for(self, is_intercept: bool, name: str) -> list[BasePenalty]:
        parts, lengths = self.penalty.parts_for(is_intercept, name), self.lengths.get(name)
        if name in self.shifts:
            return [_ShiftedPenalty(part, *self.shifts[name]) for part in parts]
        return parts if lengths is None else [_ScaledPenalty(part, lengths) for part in parts]

    def forward(self, op: GraphBuilder, weight: str) -> str | None:
        scaled, known = op.Mul(weight, self.lengths.astype(op.float_dtype)), op.type(weight)
        if known is not None:
            op.set_type(scaled, *known)
        return self.penalty.forward(op, scaled)

    def graph_key(self) -> Hashable:
        lengths = tuple((name, array.tobytes()) for name, array in sorted(self.lengths.items()))
        shifts = tuple((name, own[0], own[1].tobytes()) for name, own in sorted(self.shifts.items()))
        return (type(self), self.penalty.graph_key(), lengths, shifts)


class _ShiftedPenalty(BasePenalty):
    """A smooth penalty of an intercept ``b = c - share @ U``, as a function of the coordinates c and U."""

    def __init__(self, penalty: BasePenalty, weight: str, share: np.ndarray) -> None:
        super().__init__()
        self.penalty, self.weight, self.share = penalty, weight, share

    def parts(self) -> list[BasePenalty]:
        return self.penalty.parts()

    def forward(self, op: GraphBuilder, weight: str) -> str | None:
        share = self.share[:, np.newaxis].astype(op.float_dtype)
        own, known = (
            op.Sub(weight, op.ReduceSum(op.Mul(self.weight, share), [0], keepdims=0)),
            op.type(weight),
        )
        if known is not None:
            op.set_type(own, *known)
        return self.penalty.forward(op, own)

    def graph_key(self) -> Hashable:
        return (type(self), self.penalty.graph_key(), self.weight, self.share.tobytes())


class Coordinates:
    """A linear change of variables, to the weights for standardised features.

    With features ``z = (x - mean) / spread``, a layer ``x @ W + b`` is ``z @ U + c`` with ``U = spread * W``
    and ``c = b + mean @ W``. Objective and penalty are still those of W and b. A solver or the random
    initialisation works on U and c; their values are called a point. If features will be standardised, too
    (``of_features``), these must have a single reader, and sparse ones are scaled but not centred.
    """

    def __init__(
        self,
        task: TrainingTask,
        data: Data,
        shapes: Mapping[str, tuple[int, ...]],
        of_features: bool = False,
        measured: Mapping[str, Moments] | None = None,
    ):
        self.scales: list[Scale] = []
        self.names, self.dtype = task.graph.weights, task.graph.dtype
        ends = np.cumsum([int(np.prod(shapes[name], dtype=np.int64)) for name in task.graph.weights])
        starts = np.concatenate([[0], ends[:-1]])
        slices = {
            name: slice(int(a), int(b)) for name, a, b in zip(task.graph.weights, starts, ends, strict=True)
        }
        columns = task.inputs(data)
        penalty, bounded = task.objective.penalty, task.update.not_negative
        for layer in first_layers(task):
            features, shape = columns[layer.features], shapes[layer.weight]
            if of_features and not layer.is_only_reader:
                continue
            if len(shape) != 2 or features.ndim != 2 or features.shape[1] != shape[0]:
                continue
            size = None if layer.intercept is None else int(np.prod(shapes[layer.intercept]))
            centred = size == shape[1] and layer.intercept not in bounded
            centred = centred and not (of_features and issparse(features))  # it would fill the zeros
            if centred and layer.intercept is not None:
                of_intercept = penalty.parts_for(task.graph.intercepts[layer.intercept], layer.intercept)
                of_weight = penalty.parts_for(task.graph.intercepts[layer.weight], layer.weight)
                may_shift = of_weight or not of_features  # gradients of penalties reach weights that have one
                centred = not of_intercept or bool(may_shift and all(part.smooth for part in of_intercept))
            if measured is None:
                mean, spread = moments(features, data.weight_per_sample, centred)
            else:
                mean, spread = measured[layer.features].result(centred)
            parts = penalty.parts_for(task.graph.intercepts[layer.weight], layer.weight)
            curvature = 2 * sum(part.square_factor for part in parts)
            if centred:  # slopes of constant columns are rounding errors
                spread = np.where(spread == 0, np.maximum(CONSTANT * np.abs(mean), 1.0), spread)
            spread = np.sqrt(spread**2 + curvature)
            spread[spread == 0] = 1.0
            intercept = slices[layer.intercept] if centred and layer.intercept is not None else None
            whole = (shape[0], shape[1])
            self.scales.append(Scale(layer, slices[layer.weight], whole, intercept, mean, spread))

    @classmethod
    def of_parts(cls, scales: list[Scale], names: list[str], dtype: np.dtype) -> Coordinates:
        """Return coordinates from their saved attributes."""
        found = cls.__new__(cls)
        found.scales, found.names, found.dtype = scales, names, dtype
        return found

    @cached_property
    def _stacks(self) -> list[_Stack]:
        """Layers of equal shape, such as those of many binary classifiers, are changed together."""
        stacks: dict[Hashable, list[Scale]] = {}
        for scale in self.scales:
            stacks.setdefault((scale.shape, scale.intercept is None), []).append(scale)
        return [_Stack(scales) for scales in stacks.values()]

    def weights(self, point: np.ndarray) -> np.ndarray:
        """Return the weights W and b of a point."""
        vector = np.array(point)
        for stack in self._stacks:
            layers = point[stack.weights].reshape(stack.shape) / stack.spread
            vector[stack.weights] = layers.ravel()
            if stack.intercepts is not None:
                vector[stack.intercepts] -= (stack.mean @ layers).ravel()
        return vector

    def point(self, vector: np.ndarray) -> np.ndarray:
        """Return the point of a vector of weights: the inverse of :meth:`weights`."""
        point = np.array(vector)
        for stack in self._stacks:
            layers = vector[stack.weights].reshape(stack.shape)
            point[stack.weights] = (layers * stack.spread).ravel()
            if stack.intercepts is not None:
                point[stack.intercepts] += (stack.mean @ layers).ravel()
        return point

    def gradient(self, slopes: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to the point, given that with respect to the weights."""
        found = np.array(slopes)
        for stack in self._stacks:
            layers = slopes[stack.weights].reshape(stack.shape)
            if stack.intercepts is not None:
                of_intercepts = slopes[stack.intercepts].reshape(len(layers), 1, -1)
                layers = layers - stack.mean.swapaxes(1, 2) * of_intercepts
            found[stack.weights] = (layers / stack.spread).ravel()
        return found

    def standardised(self, task: TrainingTask, data: Data) -> tuple[TrainingTask, Data]:
        """Return task and data with standardised features and the same penalty of W."""
        return self.of_points(task), self.standardised_data(task, data)

    def of_points(self, task: TrainingTask) -> TrainingTask:
        """Return the task as a function of points, with the same penalty of W."""
        lengths = {scale.layer.weight: 1 / scale.spread[:, np.newaxis] for scale in self.scales}
        shifts = {
            str(scale.layer.intercept): (scale.layer.weight, scale.mean / scale.spread)
            for scale in self.scales
            if scale.intercept is not None
        }
        return task.changed(penalty=_ScaledPenalty(task.objective.penalty, lengths, shifts))

    def standardised_data(self, task: TrainingTask, data: Data) -> Data:
        """Return samples with standardised features."""
        columns = dict(task.inputs(data))
        for scale in self.scales:
            features = columns[scale.layer.features]
            if issparse(features) and not scale.mean.any():
                found = features.multiply(1 / scale.spread).tocsr().astype(features.dtype)
            else:
                found = np.empty(features.shape, dtype=features.dtype)
                for start in range(0, features.shape[0], CHUNK):  # float64 only for a chunk at a time
                    samples = slice(start, start + CHUNK)
                    part = features[samples].toarray() if issparse(features) else features[samples]
                    found[samples] = (part - scale.mean) / scale.spread
            columns[scale.layer.features] = found
        return Data(data.X, data.y, data.sample_weight, columns)

    def as_points(self, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the point of weights, as arrays by name."""
        return self._apply(self.point, weights)

    def as_weights(self, points: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the weights of a point, as arrays by name."""
        return self._apply(self.weights, points)

    def _apply(
        self, change: Callable[[np.ndarray], np.ndarray], arrays: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        vector = change(np.concatenate([np.ravel(arrays[n]).astype(np.float64) for n in self.names]))
        ends = np.cumsum([arrays[name].size for name in self.names])[:-1]
        parts = zip(self.names, np.split(vector, ends), strict=True)
        return {name: part.reshape(arrays[name].shape).astype(self.dtype) for name, part in parts}

    def lengths(self, n_elements: int) -> np.ndarray:
        """Return the change of each weight per unit of its coordinate."""
        found = np.ones(n_elements)
        for scale in self.scales:
            found[scale.weight] = np.repeat(1 / scale.spread, scale.shape[1])
        return found
