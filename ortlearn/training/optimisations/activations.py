"""Memory of the activations of a graph, which its gradient reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from onnx import ModelProto, NodeProto, helper

from ...data.samples import Data
from ...exceptions import ExecutionError
from ...graphs import copy_model, value_types
from ...graphs.editing import with_fields
from ...graphs.types import LARGE_CONSTANT, without_large_constants
from ...runtime.buffers import sample_bytes
from ...runtime.machine import memory_bytes
from ..graphs.sparse_products import entry_bytes, product_widths
from ..graphs.task import TrainingTask
from .hoisting import CHUNK_BYTES

__all__ = [
    "activation_bytes",
    "check_memory",
    "light_graph",
    "samples_per_evaluation",
    "samples_per_copy",
    "samples_per_call",
    "surely_fitting",
]

#: Maximum bytes of activations of one call; more samples are computed in several calls.
MAX_ACTIVATIONS = 2**27
#: Operators whose results have shapes that depend on values, or that contain other graphs.
BY_VALUE = frozenset("ConstantOfShape Expand If Loop OneHot Pad Range Resize Scan Tile Upsample".split())
TREES = "ai.onnx.ml"  # domain of operators whose attributes may be long lists
#: Approximate bytes of sparse entries of a call, which takes some milliseconds.
ENTRY_BYTES = 2**21


def activation_bytes(model: ModelProto, inputs: Mapping[str, Any] | None = None) -> int:
    """Return the bytes that the results of all nodes take per sample."""
    light = light_graph(model)
    one, two = (_result_bytes(light, inputs or {}, samples) for samples in (1, 2))
    return max(0, two - one)


def light_graph(model: ModelProto) -> ModelProto:
    """Return a graph with large constants as inputs, without large attributes, for type inference."""
    if any(node.domain == TREES for node in model.graph.node):
        model = with_fields(model, node=map(_without_large_attributes, model.graph.node))
    return without_large_constants(model)


def _without_large_attributes(node: NodeProto) -> NodeProto:
    """Return a node without long lists, such as the nodes of trees, on which no type depends."""
    lists = [(own, max(len(own.ints), len(own.floats), len(own.strings))) for own in node.attribute]
    kept = [own for own, size in lists if max(size, math.prod(own.t.dims)) <= LARGE_CONSTANT]
    if len(kept) == len(lists) or node.domain != TREES:  # others may determine shapes
        return node
    light = NodeProto(name=node.name, op_type=node.op_type, domain=node.domain, attribute=kept)
    light.input.extend(node.input)
    light.output.extend(node.output)
    return light


def _result_bytes(model: ModelProto, inputs: Mapping[str, Any], samples: int) -> int:
    """Return the bytes of the results of all nodes for a number of samples."""
    given = {name: tuple(array.shape) for name, array in inputs.items()}
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


def samples_per_evaluation(
    task: TrainingTask, data: Data, chunk_bytes: int = CHUNK_BYTES, activations: int = MAX_ACTIVATIONS
) -> int | None:
    """Return the number of samples per call for objective and gradient; None for all.

    Sparse samples are read in chunks, as entries or dense. A loss that is part of the graph may depend on
    all samples, so it gets all of them.
    """
    if task.objective.loss is None:
        return None
    if task.graph.sparse:
        inputs, widths = task.inputs(data), product_widths(task.graph.model, task.graph.sparse)
        dense = sample_bytes(array for name, array in inputs.items() if name not in widths)
        sample = dense + sum(entry_bytes(inputs[name], width) for name, width in widths.items())
        return max(1, min(chunk_bytes // sample, samples_per_call(task.graph.model, inputs, activations)))
    if data.is_sparse:
        return max(1, chunk_bytes // sample_bytes(task.inputs(data).values()))
    if len(data) <= surely_fitting(task.graph.model, task.inputs(data), activations):
        return None
    size = samples_per_call(task.graph.model, task.inputs(data), activations)
    return size if size < len(data) else None


def samples_per_call(model: ModelProto, inputs: Mapping[str, Any], limit: int = MAX_ACTIVATIONS) -> int:
    """Return the number of samples per call, at least one, by the memory of their activations."""
    return max(1, limit // max(1, activation_bytes(model, inputs)))


def check_memory(task: TrainingTask, data: Data, batch_size: int) -> None:
    """Raise an ExecutionError if the activations of a batch exceed the memory of this machine."""
    if data.is_sparse:
        return
    inputs, limit = task.inputs(data), memory_bytes()
    if batch_size <= surely_fitting(task.graph.model, inputs, limit):
        return
    if _result_bytes(light_graph(task.graph.model), inputs, batch_size) <= limit:
        return
    sample = activation_bytes(task.graph.model, inputs)
    if sample * batch_size <= limit:
        return
    fitting = limit // sample
    advice = f"use batch_size={fitting} or less" if fitting else "pass smaller samples, or a smaller model"
    raise ExecutionError(
        f"A batch of {batch_size} samples takes about {sample * batch_size / 2**30:.3g} GiB for the results "
        f"of all operators, more than the {limit / 2**30:.3g} GiB of this machine: {advice}."
    )


def surely_fitting(model: ModelProto, inputs: Mapping[str, Any], limit: int = MAX_ACTIVATIONS) -> int:
    """Return a number of samples whose activations fit into a limit, 0 if that needs the inference of shapes.

    A result has at most one element for each pair of elements of a sample, or of a sample and the constants,
    unless its shape depends on values.
    """
    if any(node.op_type in BY_VALUE for node in model.graph.node):
        return 0
    sample = max(1, sum(math.prod(array.shape[1:]) for array in inputs.values()))
    constants = sum(math.prod(tensor.dims) for tensor in model.graph.initializer)
    for value in model.graph.input:  # large constants may have become inputs
        if value.name not in inputs:
            constants += math.prod(dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim)
    return limit // (8 * (1 + len(model.graph.node)) * sample * max(sample, constants))


def samples_per_copy(task: TrainingTask, data: Data, chunk_bytes: int = CHUNK_BYTES) -> int:
    """Return the number of samples to copy per call: all of them unless features are sparse."""
    if not data.is_sparse:
        return len(data)
    inputs, sparse = task.inputs(data), task.graph.sparse
    dense = sample_bytes(array for name, array in inputs.items() if name not in sparse)
    entries = sum(entry_bytes(inputs[name]) for name in sparse)
    return min([len(data), *([chunk_bytes // dense] if dense else []), ENTRY_BYTES // max(1, entries)])
