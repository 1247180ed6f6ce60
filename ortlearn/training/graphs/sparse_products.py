"""Products of sparse features with weights, computed from the entries of CSR rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from scipy.sparse import csr_matrix, issparse

from ...data.samples import Data
from ...graphs import GraphBuilder, TensorType, make_value_info, opset_versions
from ...graphs.editing import with_fields
from ...graphs.view import GraphView
from ...runtime.buffers import take_samples
from .first_layers import is_product
from .task import TrainingTask

__all__ = [
    "all_entries",
    "append_slices",
    "entry_arrays",
    "entry_bytes",
    "entry_inputs",
    "product_widths",
    "sparse_features",
    "stays_sparse",
    "taken_samples",
    "with_sparse_products",
    "with_sparse_samples",
]

#: Inputs of a sparse feature: values, column indices and row indices (within the batch) of its entries, row
#: by row, and the start and end of the entries of each row.
VALUES, COLUMNS, ROWS = "ortlearn_values_of_{}", "ortlearn_columns_of_{}", "ortlearn_rows_of_{}"
STARTS, ENDS = "ortlearn_starts_of_{}", "ortlearn_ends_of_{}"
ENTRIES, BOUNDS = (VALUES, COLUMNS, ROWS), (STARTS, ENDS)
#: Maximum density for which entries are faster than dense rows.
MAX_DENSITY = 0.03
#: First opset in which Scatter operators add.
MIN_OPSET = 16
#: Entries of a batch; names in models never have this prefix.
PART = "ortlearn_batch_{}"


def sparse_features(model: ModelProto, names: Iterable[str]) -> frozenset[str]:
    """Return the inputs that are only read by products with matrices of known shapes."""
    sparse = list(names)
    if not sparse or opset_versions(model)[""] < MIN_OPSET:
        return frozenset()
    view = GraphView(model)

    def is_multiplied(name: str) -> bool:
        readers = view.readers.get(name, [])
        known = all(_is_sparse_product(view, node, name) for node in readers)
        return bool(readers) and known and not view.keeps_name(name)

    return frozenset(filter(is_multiplied, sparse))


def stays_sparse(samples: Any) -> bool:
    """Return whether samples are sparse and have few enough entries to be faster than dense ones."""
    return issparse(samples) and samples.nnz <= MAX_DENSITY * math.prod(samples.shape)


def _is_sparse_product(view: GraphView, node: NodeProto, name: str) -> bool:
    if node.domain not in ("", "ai.onnx") or not is_product(node) or node.input[0] != name:
        return False
    return len(view.sizes(node.input[1]) or ()) == 2 and name not in node.input[1:]


def with_sparse_products(model: ModelProto, features: Iterable[str], batch: int | str) -> ModelProto:
    """Return a model that reads the entries of sparse features instead of dense samples.

    ``x @ w`` is the sum of ``value * w[column]`` over the entries of a sample. By the gradient rules, its
    gradient is added only to the rows of ``w`` with entries.
    """
    names, view = set(features), GraphView(model, prefix="sparse_")
    taken = {value.name: value for value in model.graph.input if value.name in names}
    inputs = [value for value in model.graph.input if value.name not in taken]
    for value in taken.values():
        inputs += entry_inputs(value)[: len(ENTRIES) + isinstance(batch, str)]
    view.rewrite(partial(_write_from_entries, view, names, batch))
    return with_fields(view.to_model(), input=inputs)


def _write_from_entries(view: GraphView, names: set[str], batch: int | str, node: NodeProto) -> bool:
    """Write a product of a sparse feature as a sum over its entries."""
    if not node.input or node.input[0] not in names:
        return False
    op, (name, weight, *added) = view.op, node.input
    values, columns, rows = (part.format(name) for part in ENTRIES)
    known = view.op.type(weight)
    assert known is not None and known.shape is not None and isinstance(known.shape[1], int)
    dtype, width = helper.tensor_dtype_to_np_dtype(known.elem_type), known.shape[1]
    outputs = None if added else node.output
    if width == 1:  # GatherElements and ScatterElements are the fastest operators for scalars
        read = op.GatherElements(op.Reshape(weight, [-1]), columns, axis=0)
        terms = op.Mul(read, values)
        zeros = _zeros(op, name, batch, [], dtype)
        sums = op.ScatterElements(zeros, rows, terms, axis=0, reduction="add")
        product = op.node("Reshape", sums, [-1, 1], outputs=outputs)
    else:
        terms = op.Mul(op.Gather(weight, columns, axis=0), op.Unsqueeze(values, [1]))
        indices = op.Unsqueeze(op.Cast(rows, to=TensorProto.INT64), [1])
        zeros = _zeros(op, name, batch, [width], dtype)
        product = op.node("ScatterND", zeros, indices, terms, reduction="add", outputs=outputs)
    if added:
        op.node("Add", product, added[0], outputs=node.output)
    return True


def product_widths(model: ModelProto, features: Iterable[str]) -> dict[str, int]:
    """Return the total width of the products with each sparse feature."""
    view = GraphView(model)
    return {n: sum((view.sizes(node.input[1]) or (0, 0))[1] for node in view.readers[n]) for n in features}


def _zeros(op: GraphBuilder, name: str, batch: int | str, width: list[int], dtype: np.dtype) -> str:
    """Return the zeros that the entries of a batch are added to."""
    if isinstance(batch, int):
        return op.constant(np.zeros((batch, *width), dtype=dtype))
    shape = op.Shape(STARTS.format(name))
    zero = numpy_helper.from_array(np.zeros(1, dtype=dtype))
    return op.ConstantOfShape(op.Concat(shape, width, axis=0) if width else shape, value=zero)


def entry_inputs(value: ValueInfoProto) -> list[ValueInfoProto]:
    """Return the inputs of a sparse feature."""
    name, elem_type = value.name, value.type.tensor_type.elem_type
    entries = (f"entries_of_{name}",)  # the same symbolic length for all three
    types = [TensorType(elem_type, entries), *[TensorType(TensorProto.INT32, entries)] * 2]
    types += [TensorType(TensorProto.INT64, (None,))] * len(BOUNDS)
    return [make_value_info(n.format(name), t) for n, t in zip((*ENTRIES, *BOUNDS), types, strict=True)]


def all_entries(model: ModelProto, features: Iterable[str]) -> dict[str, ValueInfoProto]:
    """Return the inputs of the sparse features of a model by name."""
    names = set(features)
    taken = [value for value in model.graph.input if value.name in names]
    return {value.name: value for feature in taken for value in entry_inputs(feature)}


def append_slices(op: GraphBuilder, feature: str, rows: str) -> dict[str, str]:
    """Write slices with the entries of a batch of consecutive samples, and return their names."""
    start = op.Gather(STARTS.format(feature), op.Gather(rows, np.array([0])))
    end = op.Gather(ENDS.format(feature), op.Gather(rows, np.array([-1])))
    found = {part.format(feature): PART.format(part.format(feature)) for part in ENTRIES}
    for name, part in found.items():
        op.node("Slice", name, start, end, outputs=[part])
    return found


def entry_arrays(feature: str, csr: Any, indices: np.ndarray, size: int) -> dict[str, np.ndarray]:
    """Return the arrays of the inputs of a sparse feature for some samples."""
    part = csr_matrix(csr[indices])
    counts = np.diff(part.indptr)
    numbers = np.arange(len(indices), dtype=np.int32) % np.int32(size)
    bounds = part.indptr.astype(np.int64)
    arrays = [part.data, part.indices.astype(np.int32, copy=False), np.repeat(numbers, counts)]
    arrays += [bounds[:-1], bounds[1:]]
    return {n.format(feature): array for n, array in zip((*ENTRIES, *BOUNDS), arrays, strict=True)}


def entry_bytes(csr: Any, width: int = 0) -> int:
    """Return the average bytes of the entries of a sample, rounded up."""
    of_entry = csr.dtype.itemsize * (1 + width) + 2 * np.dtype(np.int32).itemsize
    of_sample = len(BOUNDS) * np.dtype(np.int64).itemsize
    return of_sample - -csr.nnz * of_entry // max(1, csr.shape[0])


def with_sparse_samples(task: TrainingTask, data: Data) -> TrainingTask:
    """Return a task that reads the entries of sparse features if the graph only multiplies them."""
    names = [name for name, array in task.inputs(data).items() if stays_sparse(array)]
    sparse = sparse_features(task.graph.model, names)
    return task.changed(sparse=sparse) if sparse else task


def taken_samples(
    task: TrainingTask, columns: Iterable[tuple[str, Any]], indices: np.ndarray, size: int
) -> dict[str, np.ndarray]:
    """Return samples as arrays: the entries of sparse features of the task, others dense."""
    taken: dict[str, np.ndarray] = {}
    for name, array in columns:
        if name in task.graph.sparse:
            taken |= entry_arrays(name, array, indices, size)
        else:
            taken[name] = take_samples(array, indices)
    return taken
