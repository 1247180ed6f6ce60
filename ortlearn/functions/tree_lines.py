"""Exact attributions of the jumps of ensembles of trees along lines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import ModelProto

from ..exceptions import GradientError
from ..graphs import extract_model
from ..models.trees.nodes import FusedTrees, Nodes
from .bare import BareFunction
from .graphs import FunctionGraphs
from .outputs import with_output
from .smooth_trees import trees_of_source
from .sources import Source

__all__ = ["TreeLines"]

#: Operators that keep columns apart, and scale or shift them.
SCALING = {"Add", "Cast", "Div", "Gather", "Identity", "Mul", "Sub"}
#: Number of points at which a model is evaluated at once.
CHUNK = 2**14


class Crossings(NamedTuple):
    """Thresholds that lines cross, one item each, sorted by sample and position."""

    sample: np.ndarray
    position: np.ndarray  # in [0, 1], from start to end
    feature: np.ndarray  # column of X


class TreeLines:
    """A model that depends on X only through ensembles of trees, along lines from a start to an end.

    The gradient of such a function along a line is a sum of jumps at the thresholds that the line crosses. As
    in integrated gradients (Sundararajan, Taly and Yan, ICML 2017), the jump at a threshold is attributed to
    its feature. Features whose thresholds are crossed at one point change one after the other; the result is
    the mean of the ascending and the descending order.
    """

    def __init__(self, source: Source, output: str):
        forms = trees_of_source(source)
        if not forms or not source.schema.is_number_matrix or source.sklearn_steps is not None:
            raise GradientError(
                f"{source.name} has no ensemble of trees on a numeric matrix: its jumps are unknown."
            )
        self.source, self.name = source, source.schema.inputs[0].name
        self.value = BareFunction(FunctionGraphs(with_output(source, output), []))
        self._ensembles = [(_Scaled(source, form), form.nodes) for form in forms]

    def crossings(self, start: np.ndarray, end: np.ndarray) -> Crossings:
        """Return the thresholds that lines from ``start`` to ``end`` cross, (n, n_features) each."""
        parts = []
        for scaled, nodes in self._ensembles:
            first, last = scaled(start), scaled(end)
            sample, position, column = _crossings(nodes, first, last)
            parts.append((sample, position, scaled.features[column]))
        sample, position, feature = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((feature, position, sample))
        kept = np.ones(len(order), dtype=bool)
        keys = np.column_stack([sample, position, feature])[order]
        kept[1:] = (np.diff(keys, axis=0) != 0).any(axis=1)
        return Crossings(*(values[order][kept] for values in (sample, position, feature)))

    def attributions(self, start: np.ndarray, end: np.ndarray, column: np.ndarray | None) -> np.ndarray:
        """Return attributions of shape (n, n_features), of one column of the output for each sample."""
        found = self.crossings(start, end)
        result = np.zeros(start.shape)
        tied = (np.diff(found.sample) == 0) & (np.diff(found.position) == 0)
        orders = (False, True) if tied.any() else (False,)
        for descending in orders:
            result += self._in_order(found, start, end, column, descending) / len(orders)
        return result

    def _in_order(
        self,
        found: Crossings,
        start: np.ndarray,
        end: np.ndarray,
        column: np.ndarray | None,
        descending: bool,
    ) -> np.ndarray:
        """Return attributions; features change in an order where their thresholds are at one point."""
        feature = -found.feature if descending else found.feature
        order = np.lexsort((feature, found.position, found.sample))
        sample, position, feature = (values[order] for values in found)
        result = np.zeros(start.shape)
        bounds = np.searchsorted(sample, np.arange(len(start) + 1))
        points, owners = [], []
        for index in range(len(start)):
            part = slice(bounds[index], bounds[index + 1])
            points.append(_points(start[index], end[index], position[part], feature[part]))
            owners.append(np.full(len(points[-1]), index))
        values = self._values(np.concatenate(points), np.concatenate(owners), column)
        ends = np.cumsum([len(part) for part in points])
        for index, stop in enumerate(ends):
            part = slice(bounds[index], bounds[index + 1])
            jumps = np.diff(values[stop - len(points[index]) : stop])
            np.add.at(result[index], feature[part], jumps)
        return result

    def _values(self, points: np.ndarray, owners: np.ndarray, column: np.ndarray | None) -> np.ndarray:
        dtype = self.source.schema.float_dtype
        chunks = range(0, len(points), CHUNK)
        parts = [self.value(np.ascontiguousarray(points[i : i + CHUNK], dtype=dtype)) for i in chunks]
        values = np.concatenate(parts).astype(np.float64)
        if values.ndim == 1:
            return values
        return values[np.arange(len(values)), 0 if column is None else column[owners]]


def _points(start: np.ndarray, end: np.ndarray, position: np.ndarray, feature: np.ndarray) -> np.ndarray:
    """Return the start, a point after each threshold, and the end."""
    after = np.append((position[1:] + position[:-1]) / 2, 1.0)[:, None]
    points = np.vstack([start, start + after * (end - start)])
    points[-1] = end  # without rounding
    for index in np.flatnonzero(np.diff(position) == 0):  # the next feature has not changed yet
        points[index + 1] = points[index]
        points[index + 1, feature[index]] = _after(start, end, position, int(index), int(feature[index]))
    return points


def _after(start: np.ndarray, end: np.ndarray, position: np.ndarray, index: int, feature: int) -> float:
    """Return the value of a feature on a line after a group of thresholds at one point."""
    later = position[position > position[index]]
    share = (position[index] + later[0]) / 2 if len(later) else 1.0
    return end[feature] if share == 1.0 else start[feature] + share * (end[feature] - start[feature])


def _crossings(
    nodes: Nodes, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sample, position and column of each split that lines cross on their paths through trees."""
    (left, right), roots, n_samples = nodes.children, nodes.roots, len(first)
    node, sample = np.repeat(roots, n_samples), np.tile(np.arange(n_samples), len(roots))
    low, high = np.zeros(len(node)), np.ones(len(node))
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    while True:
        split = ~nodes.is_leaf[node]
        if not split.any():
            break
        node, sample, low, high = node[split], sample[split], low[split], high[split]
        column, threshold = nodes.feature[node], nodes.threshold[node]
        begin, stop = first[sample, column], last[sample, column]
        begins_left, stops_left = (
            np.where(np.isnan(values), nodes.missing_left[node], values <= threshold)
            for values in (begin, stop)
        )
        crosses = begins_left != stops_left
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            position = np.nan_to_num((threshold - begin) / (stop - begin), nan=0.5)
        position = np.where(crosses, np.clip(position, 0.0, 1.0), np.inf)  # never, without a crossing
        inside = crosses & (low <= position) & (position <= high)
        found.append((sample[inside], position[inside], column[inside]))
        sides = left[node], right[node]
        parts = [
            (np.where(begins_left, *sides), sample, low, np.minimum(high, position)),
            (np.where(begins_left, *sides[::-1]), sample, np.maximum(low, position), high),
        ]
        joined = [np.concatenate(values) for values in zip(*parts, strict=True)]
        reached = joined[2] <= joined[3]
        node, sample, low, high = (values[reached] for values in joined)
    empty = (np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int64))
    return tuple(np.concatenate(values) for values in zip(*(found or [empty]), strict=True))  # type: ignore[return-value]


class _Scaled:
    """The columns that trees compare, each of which is a scaled column of X."""

    def __init__(self, source: Source, form: FusedTrees):
        name = source.schema.inputs[0].name
        self._dtype, self._is_x = source.schema.float_dtype, form.samples == name
        if self._is_x:
            self.features = np.arange(source.schema.n_features or int(form.nodes.feature.max()) + 1)
            return
        part = extract_model(source.model, [form.samples])
        self._check(part, source)
        self._call = BareFunction(FunctionGraphs(part, []))
        n_features = int(source.schema.n_features or 0)
        shifted = self(np.vstack([np.zeros(n_features), np.eye(n_features)]))
        moved = shifted[1:] != shifted[0]
        if not (moved.sum(axis=0) <= 1).all():
            raise self._error(source)
        self.features = moved.argmax(axis=0)

    @classmethod
    def _check(cls, part: ModelProto, source: Source) -> None:
        """Raise an error unless a graph scales columns."""
        constants = {tensor.name for tensor in part.graph.initializer}
        for node in part.graph.node:
            varying = [value for value in node.input if value and value not in constants]
            if node.op_type == "Constant":
                constants.update(node.output)
            elif node.op_type not in SCALING or len(varying) > 1:
                raise cls._error(source)

    @staticmethod
    def _error(source: Source) -> GradientError:
        return GradientError(
            f"The steps before the trees of {source.name} do more than scale columns: a line in X is not a "
            "line there. Explain the part of the pipeline after them."
        )

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the columns that the trees compare."""
        if self._is_x:
            return X.astype(np.float64)
        return self._call(np.ascontiguousarray(X, dtype=self._dtype)).astype(np.float64)
