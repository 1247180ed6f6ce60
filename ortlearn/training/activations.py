"""Memory of what a graph computes of a sample, which its gradient reads again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from onnx import ModelProto, helper

from ..graphs import copy_model, make_inputs_of, value_types
from .buffers import Data, row_bytes
from .hoisting import CHUNK_BYTES
from .sparse_products import entry_bytes, product_widths
from .task import TrainingTask

__all__ = ["activation_bytes", "rows_of_call", "rows_of_copy", "samples_of_call", "without_large_constants"]

#: Bytes of activations that one call may hold; more samples are computed in several calls.
MAX_ACTIVATIONS = 2**27
#: Numbers of a constant that no shape depends on.
LARGE_CONSTANT = 1024
#: Bytes of the entries of sparse rows that a call takes, about: it has some milliseconds of work.
ENTRY_BYTES = 2**21


def activation_bytes(model: ModelProto, inputs: Mapping[str, Any] | None = None) -> int:
    """Return the bytes that the results of all nodes take for one more sample.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.training.activations import activation_bytes
    >>> activation_bytes(parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,3] x, float[3,5] w) => (float[N,5] y) { z = MatMul (x, w) y = Tanh (z) }'''))
    40
    """
    given = {name: tuple(array.shape) for name, array in (inputs or {}).items()}
    light = without_large_constants(model)
    one, two = (_result_bytes(light, given, samples) for samples in (1, 2))
    return max(0, two - one)


def without_large_constants(model: ModelProto) -> ModelProto:
    """Return a graph that takes its large constants as inputs: one to infer types of."""
    large = [t.name for t in model.graph.initializer if math.prod(t.dims) > LARGE_CONSTANT]
    return make_inputs_of(model, large)


def _result_bytes(model: ModelProto, given: Mapping[str, tuple[int, ...]], samples: int) -> int:
    """Return the bytes of the results of all nodes for a number of samples."""
    bound, total = copy_model(model), 0
    for value in bound.graph.input:
        dims = value.type.tensor_type.shape.dim
        sizes = given.get(value.name, ())
        for axis, dim in enumerate(dims):
            if axis == 0 and (sizes or not dim.HasField("dim_value")):
                dim.dim_value = samples
            elif axis and len(sizes) == len(dims):
                dim.dim_value = sizes[axis]
    types = value_types(bound)
    for name in (name for node in bound.graph.node for name in node.output):
        known = types.get(name)
        if known is not None and known.shape is not None:
            sizes = tuple(size for size in known.shape if isinstance(size, int))
            total += math.prod(sizes) * helper.tensor_dtype_to_np_dtype(known.elem_type).itemsize
    return total


def rows_of_call(task: TrainingTask, data: Data) -> int | None:
    """Return the number of samples that one call computes objective and gradient of, None for all of them.

    Sparse samples come in chunks, as entries or made dense. A graph's own loss may be anything of its
    samples: it gets all.
    """
    if task.objective.loss is None:
        return None
    if task.graph.sparse:
        inputs, widths = data.inputs(task), product_widths(task.graph.model, task.graph.sparse)
        dense = row_bytes(array for name, array in inputs.items() if name not in widths)
        of_row = dense + sum(entry_bytes(inputs[name], width) for name, width in widths.items())
        return max(1, min(CHUNK_BYTES // of_row, samples_of_call(task.graph.model, inputs)))
    if data.is_sparse:
        return max(1, CHUNK_BYTES // row_bytes(data.inputs(task).values()))
    size = samples_of_call(task.graph.model, data.inputs(task))
    return size if size < len(data) else None


def samples_of_call(model: ModelProto, inputs: Mapping[str, Any]) -> int:
    """Return the number of samples whose activations one call may hold, at least one."""
    return max(1, MAX_ACTIVATIONS // max(1, activation_bytes(model, inputs)))


def rows_of_copy(task: TrainingTask, data: Data) -> int:
    """Return the number of samples that are copied for a call: all of them if none is sparse."""
    if not data.is_sparse:
        return len(data)
    inputs, sparse = data.inputs(task), task.graph.sparse
    dense = row_bytes(array for name, array in inputs.items() if name not in sparse)
    entries = sum(entry_bytes(inputs[name]) for name in sparse)
    return min([len(data), *([CHUNK_BYTES // dense] if dense else []), ENTRY_BYTES // max(1, entries)])
