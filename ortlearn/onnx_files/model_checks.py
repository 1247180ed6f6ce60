"""Checks of a foreign ONNX model that neither onnx nor onnxruntime makes before it stops or hangs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from ..exceptions import ConversionError
from ..graphs import TensorType, count_nodes, subgraphs
from ..graphs.nodes import all_nodes, attribute

__all__ = ["MAX_NODES", "check_bodies", "check_sizes", "check_structure"]

#: Nodes of a model, its functions inlined.
MAX_NODES = 100_000
#: Graphs within graphs, and functions that call functions.
MAX_DEPTH = 50
#: Bytes of a tensor where the memory of the machine is not known.
MAX_BYTES = 2**37

#: Elements of a vector: onnx follows the values of each in its inference of shapes.
MAX_VECTOR = 2**24
#: Fields of bytes that are texts.
_TEXTS = {"onnx.AttributeProto.s", "onnx.AttributeProto.strings", "onnx.TensorProto.string_data"}
#: Fields of a tensor by its data type, with the elements that one entry holds.
_FIELDS: dict[int, tuple[str, float]] = {
    **dict.fromkeys((TensorProto.FLOAT,), ("float_data", 1)),
    **dict.fromkeys((TensorProto.DOUBLE,), ("double_data", 1)),
    **dict.fromkeys((TensorProto.INT64,), ("int64_data", 1)),
    **dict.fromkeys((TensorProto.UINT32, TensorProto.UINT64), ("uint64_data", 1)),
    **dict.fromkeys((TensorProto.COMPLEX64,), ("float_data", 0.5)),
    **dict.fromkeys((TensorProto.COMPLEX128,), ("double_data", 0.5)),
    **dict.fromkeys((TensorProto.STRING,), ("string_data", 1)),
}
_FOUR_BITS = tuple(
    getattr(TensorProto, name) for name in ("INT4", "UINT4", "FLOAT4E2M1") if hasattr(TensorProto, name)
)


def check_structure(model: ModelProto, label: str) -> None:
    """Raise a ConversionError for invalid names, tensors without their values, and too many nodes.

    ``label`` says what the model was read from, in the plural.
    """
    for tensor in _walk(model, label):
        problem = _tensor_problem(tensor)
        if problem:
            raise ConversionError(f"{label} hold a tensor {tensor.name!r} that {problem}.")
    total = _inlined_nodes(model, label)
    if total > MAX_NODES:
        raise ConversionError(
            f"{label} have {total} nodes once their functions are inlined, more than {MAX_NODES}: "
            "export a smaller model."
        )


def check_bodies(model: ModelProto, label: str) -> None:
    """Raise a ConversionError for If, Loop and Scan that do not fit their subgraphs.

    Their numbers of inputs or outputs differ. Functions of the model are inlined. ``label`` says what the
    model was read from, in the plural.
    """
    for node in all_nodes(model.graph):
        problem = _body_problem(node)
        if problem:
            raise ConversionError(f"{label} hold a {node.op_type} (node {node.name!r}) that {problem}.")


def check_sizes(types: Mapping[str, TensorType], label: str) -> None:
    """Raise a ConversionError for tensors that do not fit into memory, whatever the number of samples.

    ``label`` says what the model was read from, in the plural.
    """
    limit = _memory()
    for name, known in types.items():
        sizes = [size for size in known.shape or () if isinstance(size, int)]
        if any(size < 0 for size in sizes):
            raise ConversionError(f"{label} give tensor {name!r} a negative size: {known.shape}.")
        if len(known.shape or ()) == 1 and math.prod(sizes) > MAX_VECTOR:
            raise ConversionError(f"{label} compute a tensor {name!r} of {sizes[0]} elements: shorten it.")
        n_bytes = math.prod(sizes) * 4
        if n_bytes > limit:
            raise ConversionError(
                f"{label} compute a tensor {name!r} of the shape {known.shape}, {n_bytes / 2**30:.3g} GiB, "
                f"and the machine has {limit / 2**30:.3g}: correct the sizes in the model."
            )


def _walk(message: Any, label: str, depth: int = 0) -> Iterator[TensorProto]:
    """Yield the tensors of a message; reading its fields finds texts that are none."""
    if depth > 4 * MAX_DEPTH:
        raise ConversionError(f"{label} hold graphs nested more than {MAX_DEPTH} deep.")
    parts: list[Any] = []
    try:
        for field, value in message.ListFields():
            values = [value] if isinstance(value, str | bytes) or hasattr(value, "ListFields") else value
            if field.message_type is not None:
                parts += values
            elif field.type == field.TYPE_STRING or field.full_name in _TEXTS:
                _check_texts(values)
    except UnicodeDecodeError as error:
        raise ConversionError(
            f"{label} hold a text in a {type(message).__name__} that is not UTF-8: {error}."
        ) from error
    for part in parts:
        if isinstance(part, TensorProto):
            yield part
        yield from _walk(part, label, depth + 1)


def _check_texts(values: Iterable[str | bytes]) -> None:
    for value in values:
        if isinstance(value, bytes):  # protobuf gives texts that are not UTF-8 as bytes
            value.decode()


def _tensor_problem(tensor: TensorProto) -> str | None:
    """Return what is wrong with a tensor."""
    if tensor.data_location == TensorProto.EXTERNAL:
        return "keeps its values in another file: pass the path of the model"
    try:
        dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, ValueError, TypeError):
        return f"has the unknown type {tensor.data_type}"
    if any(size < 0 for size in tensor.dims):
        return f"has the negative size {list(tensor.dims)}"
    expected = math.prod(tensor.dims)
    if tensor.HasField("raw_data"):
        found: float = len(tensor.raw_data)
        size = 0.5 if tensor.data_type in _FOUR_BITS else dtype.itemsize
    else:
        field, share = _FIELDS.get(tensor.data_type, ("int32_data", 1))
        found = len(getattr(tensor, field)) * share
        size = 0.5 if tensor.data_type in _FOUR_BITS else 1
    if found != math.ceil(expected * size):
        return f"has the shape {list(tensor.dims)} and other values than fit it"
    return None


def _body_problem(node: NodeProto) -> str | None:
    """Return what is wrong with the subgraphs of a node of control flow."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in ("If", "Loop", "Scan"):
        return None
    graphs = list(subgraphs(node))
    n_in, n_out = len(node.input), len(node.output)
    if len(graphs) != (2 if node.op_type == "If" else 1):
        return "lacks a subgraph"
    if node.op_type == "If":
        fits = all(not graph.input and len(graph.output) == n_out for graph in graphs)
    elif node.op_type == "Loop":
        fits = n_in > 1 and len(graphs[0].input) == n_in and len(graphs[0].output) == n_out + 1
        fits = fits and n_out >= n_in - 2
    else:
        n_scanned = attribute(node, "num_scan_inputs", 0)
        fits = len(graphs[0].input) == n_in and len(graphs[0].output) == n_out
        fits = fits and 0 < n_scanned <= n_in <= n_out + n_scanned
    return None if fits else "has other numbers of inputs or outputs than its subgraphs"


def _inlined_nodes(model: ModelProto, label: str) -> int:
    """Return the number of nodes after functions are inlined, without inlining them."""
    functions = {(f.domain, f.name): f for f in model.functions}
    counts: dict[tuple[str, str], int] = {}

    def size(part: FunctionProto | GraphProto, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise ConversionError(
                f"{label} have functions or graphs that call one another more than {MAX_DEPTH} deep, or "
                "a function that calls itself."
            )
        total = 0
        for node in part.node:
            key = node.domain, node.op_type
            if key in functions and key not in counts:
                counts[key] = size(functions[key], depth + 1)
            total += counts.get(key, 1) + sum(size(inner, depth + 1) for inner in subgraphs(node))
        return total

    return size(model.graph, 0) if functions else count_nodes(model.graph)


def _memory() -> int:
    """Return the bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # as on Windows
        return MAX_BYTES
