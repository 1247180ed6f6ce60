"""Products of sparse features with weights, computed from the entries of CSR rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from scipy.sparse import csr_matrix, issparse

from ..graphs import GraphBuilder, TensorType, make_value_info, opset_versions
from ..graphs.editing import with_fields
from ..graphs.view import GraphView
from .first_layers import is_product

__all__ = [
    "all_entries",
    "append_slices",
    "entry_arrays",
    "entry_bytes",
    "entry_inputs",
    "product_widths",
    "sparse_features",
    "stays_sparse",
    "with_sparse_products",
]

#: Inputs that stand for a sparse feature: its entries, row by row, with their values, their columns and the
#: numbers of their rows, counted from the first of the batch; and where the entries of a row begin and end.
VALUES, COLUMNS, ROWS = "ortlearn_values_of_{}", "ortlearn_columns_of_{}", "ortlearn_rows_of_{}"
STARTS, ENDS = "ortlearn_starts_of_{}", "ortlearn_ends_of_{}"
ENTRIES, BOUNDS = (VALUES, COLUMNS, ROWS), (STARTS, ENDS)
#: Share of entries up to which they take no longer than rows made dense.
MAX_DENSITY = 0.03
#: Scatter operators add from this opset on.
ADDING = 16
#: A batch's part of the entries; no name of a model begins like this.
PART = "ortlearn_batch_{}"


def sparse_features(model: ModelProto, names: Iterable[str]) -> frozenset[str]:
    """Return the inputs that nothing reads but products with matrices of known shapes."""
    sparse = list(names)
    if not sparse or opset_versions(model)[""] < ADDING:
        return frozenset()
    view = GraphView(model)

    def is_multiplied(name: str) -> bool:
        readers = view.readers.get(name, [])
        known = all(_is_sparse_product(view, node, name) for node in readers)
        return bool(readers) and known and not view.keeps_name(name)

    return frozenset(filter(is_multiplied, sparse))


def stays_sparse(rows: Any) -> bool:
    """Return whether rows are sparse, and have so few entries that these are faster than dense rows."""
    return issparse(rows) and rows.nnz <= MAX_DENSITY * math.prod(rows.shape)


def _is_sparse_product(view: GraphView, node: NodeProto, name: str) -> bool:
    if node.domain not in ("", "ai.onnx") or not is_product(node) or node.input[0] != name:
        return False
    return len(view.sizes(node.input[1]) or ()) == 2 and name not in node.input[1:]


def with_sparse_products(model: ModelProto, features: Iterable[str], batch: int | str) -> ModelProto:
    """Return a model that takes the entries of sparse features in place of their rows.

    ``x @ w`` is the sum over the entries of a row of ``value * w[column]``. Its gradient is left to the
    rules of the operators: it is added to the rows of ``w`` whose columns are present.
    """
    names, view = set(features), GraphView(model, prefix="sparse_")
    taken = {value.name: value for value in model.graph.input if value.name in names}
    inputs = [value for value in model.graph.input if value.name not in taken]
    for value in taken.values():
        inputs += entry_inputs(value)[: len(ENTRIES) + isinstance(batch, str)]
    view.rewrite(partial(_summed, view, names, batch))
    return with_fields(view.to_model(), input=inputs)


def _summed(view: GraphView, names: set[str], batch: int | str, node: NodeProto) -> bool:
    """Write a product as a sum over entries."""
    if not node.input or node.input[0] not in names:
        return False
    op, (name, weight, *added) = view.op, node.input
    values, columns, rows = (part.format(name) for part in ENTRIES)
    known = view.op.type(weight)
    assert known is not None and known.shape is not None and isinstance(known.shape[1], int)
    dtype, width = helper.tensor_dtype_to_np_dtype(known.elem_type), known.shape[1]
    outputs = None if added else node.output
    if width == 1:  # onnxruntime gathers and scatters single numbers fastest one by one
        read = op.GatherElements(op.Reshape(weight, [-1]), columns, axis=0)
        terms = op.Mul(read, values)
        zeros = _zeros(op, name, batch, [], dtype)
        sums = op.ScatterElements(zeros, rows, terms, axis=0, reduction="add")
        product = op.node("Reshape", sums, [-1, 1], outputs=outputs)
    else:
        terms = op.Mul(op.Gather(weight, columns, axis=0), op.Unsqueeze(values, [1]))
        places = op.Unsqueeze(op.Cast(rows, to=TensorProto.INT64), [1])
        zeros = _zeros(op, name, batch, [width], dtype)
        product = op.node("ScatterND", zeros, places, terms, reduction="add", outputs=outputs)
    if added:
        op.node("Add", product, added[0], outputs=node.output)
    return True


def product_widths(model: ModelProto, features: Iterable[str]) -> dict[str, int]:
    """Return the numbers that products compute of each entry of sparse features."""
    view = GraphView(model)
    return {n: sum((view.sizes(node.input[1]) or (0, 0))[1] for node in view.readers[n]) for n in features}


def _zeros(op: GraphBuilder, name: str, batch: int | str, width: list[int], dtype: np.dtype) -> str:
    """Return the sums of a batch before anything is added."""
    if isinstance(batch, int):
        return op.constant(np.zeros((batch, *width), dtype=dtype))
    shape = op.Shape(STARTS.format(name))
    zero = numpy_helper.from_array(np.zeros(1, dtype=dtype))
    return op.ConstantOfShape(op.Concat(shape, width, axis=0) if width else shape, value=zero)


def entry_inputs(value: ValueInfoProto) -> list[ValueInfoProto]:
    """Return the inputs that stand for a sparse feature."""
    name, elem_type = value.name, value.type.tensor_type.elem_type
    entries = (f"entries_of_{name}",)  # one name, from which it is known that they have one length
    types = [TensorType(elem_type, entries), *[TensorType(TensorProto.INT32, entries)] * 2]
    types += [TensorType(TensorProto.INT64, (None,))] * len(BOUNDS)
    return [make_value_info(n.format(name), t) for n, t in zip((*ENTRIES, *BOUNDS), types, strict=True)]


def all_entries(model: ModelProto, features: Iterable[str]) -> dict[str, ValueInfoProto]:
    """Return the inputs that stand for sparse features of a model, by their names."""
    names = set(features)
    taken = [value for value in model.graph.input if value.name in names]
    return {value.name: value for feature in taken for value in entry_inputs(feature)}


def append_slices(op: GraphBuilder, feature: str, rows: str) -> dict[str, str]:
    """Write the entries of the rows of a batch, which follow one another, and return their names."""
    start = op.Gather(STARTS.format(feature), op.Gather(rows, np.array([0])))
    end = op.Gather(ENDS.format(feature), op.Gather(rows, np.array([-1])))
    found = {part.format(feature): PART.format(part.format(feature)) for part in ENTRIES}
    for name, part in found.items():
        op.node("Slice", name, start, end, outputs=[part])
    return found


def entry_arrays(feature: str, csr: Any, rows: np.ndarray, size: int) -> dict[str, np.ndarray]:
    """Return the inputs that stand for some rows of a sparse feature."""
    part = csr_matrix(csr[rows])
    counts = np.diff(part.indptr)
    numbers = np.arange(len(rows), dtype=np.int32) % np.int32(size)
    bounds = part.indptr.astype(np.int64)
    arrays = [part.data, part.indices.astype(np.int32, copy=False), np.repeat(numbers, counts)]
    arrays += [bounds[:-1], bounds[1:]]
    return {n.format(feature): array for n, array in zip((*ENTRIES, *BOUNDS), arrays, strict=True)}


def entry_bytes(csr: Any, width: int = 0) -> int:
    """Return the bytes that a row takes as entries, on average and rounded up."""
    of_entry = csr.dtype.itemsize * (1 + width) + 2 * np.dtype(np.int32).itemsize
    of_row = len(BOUNDS) * np.dtype(np.int64).itemsize
    return of_row - -csr.nnz * of_entry // max(1, csr.shape[0])
