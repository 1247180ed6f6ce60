"""Products of sparse samples and sums of leaves, which SciPy computes several times as fast as operators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from onnx import NodeProto
from scipy.sparse import csr_matrix, issparse

from ...data.samples import Data
from ...graphs import make_value_info
from ...graphs.editing import with_fields
from ...graphs.nodes import attribute
from ...graphs.view import GraphView
from ..graphs.sparse_products import sparse_features
from ..graphs.task import TrainingTask
from ..optimisations.activations import samples_per_call, surely_fitting

__all__ = ["BoundMap", "LinearMap", "bound_maps", "with_linear_maps"]

#: Inputs of a graph with the results of linear maps.
MAPPED = "ortlearn_map_{}"


@dataclass(frozen=True)
class LinearMap:
    """``z = A w`` of a weight w, where A depends on the samples only."""

    name: str  # input of the graph for z
    feature: str  # sparse samples A, or the indices of the elements of w to sum
    weight: str
    shape: tuple[int, ...]  # of z for a sample
    n_sums: int = 0  # sums for a sample, of every so many-th index; 0 for a product of sparse samples

    def matrix(self, samples: Any, n_rows: int, dtype: np.dtype) -> csr_matrix | None:
        """Return A for a weight of ``n_rows`` rows; None if an index is out of bounds."""
        if not self.n_sums:
            return samples.tocsr() if samples.shape[1] == n_rows else None
        if not samples.size or samples.min() < -n_rows or samples.max() >= n_rows:
            return None
        n_terms = samples.shape[1] // self.n_sums
        places = samples.reshape(len(samples), n_terms, self.n_sums).transpose(0, 2, 1).ravel() % n_rows
        ends = np.arange(0, len(places) + 1, n_terms)
        return csr_matrix((np.ones(len(places), dtype), places, ends), (len(ends) - 1, n_rows))


class BoundMap:
    """A linear map for some samples, and the arrays that a graph reads and writes."""

    def __init__(
        self, own: LinearMap, matrix: csr_matrix, n_samples: int, dtype: np.dtype, place: slice
    ) -> None:
        self.map, self.place, self._matrix = own, place, matrix  # the place of the weight among all elements
        self.result, self.slopes = (np.zeros((n_samples, *own.shape), dtype) for _ in range(2))

    def compute(self, vector: np.ndarray) -> None:
        """Write z for a vector of all weights."""
        weight, n_rows = vector[self.place], self._matrix.shape[1]
        columns = weight if len(weight) == n_rows else weight.reshape(n_rows, -1)
        self.result[...] = (self._matrix @ columns).reshape(self.result.shape)

    def gradient(self) -> np.ndarray:
        """Return the gradient of the weight, flat, given the slopes of z."""
        slopes = self.slopes.reshape(self._matrix.shape[0], -1)
        return np.ravel(self._matrix.T @ (slopes if slopes.shape[1] > 1 else slopes[:, 0]))


def bound_maps(
    task: TrainingTask, data: Data, shapes: Mapping[str, tuple[int, ...]], limit: int
) -> tuple[TrainingTask, list[BoundMap]]:
    """Return the task that reads linear maps, and these for some samples and shapes of weights.

    There are none if an index is out of bounds, or if the activations of all samples exceed a limit in bytes.
    """
    inputs, dtype = task.inputs(data), task.graph.dtype
    mapped, maps = with_linear_maps(task, inputs)
    if not maps:
        return task, []
    matrices = [own.matrix(inputs[own.feature], shapes[own.weight][0], dtype) for own in maps]
    read = {name: array for name, array in inputs.items() if name in mapped.graph.features}
    read |= {own.name: np.broadcast_to(np.zeros(1), (len(data), *own.shape)) for own in maps}
    fits = (count(mapped.graph.model, read, limit) for count in (surely_fitting, samples_per_call))
    if any(own is None for own in matrices) or all(count < len(data) for count in fits):
        return task, []
    ends = [0, *itertools.accumulate(map(math.prod, shapes.values()))]
    places = dict(zip(shapes, map(slice, ends, ends[1:]), strict=True))
    pairs = zip(maps, matrices, strict=True)
    return mapped, [BoundMap(own, found, len(data), dtype, places[own.weight]) for own, found in pairs]


def with_linear_maps(task: TrainingTask, inputs: Mapping[str, Any]) -> tuple[TrainingTask, list[LinearMap]]:
    """Return a task whose graph reads the results of linear maps as features, and these maps, if any."""
    sparse = {name for name, array in inputs.items() if issparse(array)}
    indices = {name for name, array in inputs.items() if array.dtype.kind == "i" and array.ndim == 2}
    if not sparse | indices:
        return task, []
    view, maps = GraphView(task.graph.model, prefix="mapped_"), list[LinearMap]()
    products = (node for node in view.nodes if sparse.intersection(node.input[:1]))
    factors = {name for node in products for name in node.input[1:2]}
    if sparse - sparse_features(task.graph.model, sparse) or factors - {*task.graph.weights}:
        return task, []
    view.rewrite(partial(_read_map, view, task, inputs, maps))
    if not maps:
        return task, []
    view.drop_unused()
    read = {name for node in view.nodes for name in node.input} | view.captured
    types = {own.name: view.op.type(own.name) for own in maps}
    mapped = {name: known for name, known in types.items() if known is not None}
    features = {name: known for name, known in task.graph.features.items() if name in read}
    left_out, given = task.graph.features.keys() - features, task.graph.model.graph.input
    left = [value for value in given if value.name not in left_out]
    left += [make_value_info(name, known) for name, known in mapped.items()]
    return task.changed(model=with_fields(view.to_model(), input=left), features={**features, **mapped}), maps


def _read_map(
    view: GraphView, task: TrainingTask, inputs: Mapping[str, Any], maps: list[LinearMap], node: NodeProto
) -> bool:
    """Write a node whose result is a linear map as an input, and add the map."""
    name, op, added = MAPPED.format(len(maps)), view.op, list[str]()
    if node.input and issparse(inputs.get(node.input[0])):
        feature, weight, *added = node.input
        found: LinearMap | None = LinearMap(name, feature, weight, (view.sizes(weight) or ())[1:])
    else:
        found = _sums_of_elements(view, task, inputs, node, name)
    if found is None:
        return False
    known = op.type(found.weight)
    assert known is not None
    maps.append(found)
    op.set_type(name, known.elem_type, (None, *found.shape))
    op.node("Add" if added else "Identity", name, *added, outputs=node.output)
    return True


def _sums_of_elements(
    view: GraphView, task: TrainingTask, inputs: Mapping[str, Any], node: NodeProto, name: str
) -> LinearMap | None:
    """Return the map of a node that sums the elements of a weight that each sample looks up, or None."""
    axes = view.value(node.input[1]) if node.op_type == "ReduceSum" and len(node.input) == 2 else None
    if axes is None or axes.tolist() != [1]:
        return None
    divided = view.producer(node.input[0], "Reshape")
    gather = view.producer(divided.input[0] if divided is not None else node.input[0], "Gather")
    if gather is None or attribute(gather, "axis", 0) != 0 or gather.input[0] not in task.graph.weights:
        return None
    (table, feature), keeps = gather.input, attribute(node, "keepdims", 1)
    known, indices = view.op.shape(table), inputs.get(feature)
    if known is None or indices is None or indices.ndim != 2:
        return None
    rest = tuple(size for size in known[1:] if isinstance(size, int))
    if divided is None:
        return (
            LinearMap(name, feature, table, (*(1,) * keeps, *rest), 1)
            if len(rest) == len(known) - 1
            else None
        )
    sizes = view.value(divided.input[1])
    if sizes is None or len(sizes) != 3 or keeps or len(known) != 1:
        return None
    is_whole = math.prod(sizes[1:]) == indices.shape[1]
    return LinearMap(name, feature, table, (int(sizes[2]),), int(sizes[2])) if is_whole else None
