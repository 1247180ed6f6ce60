"""Checks of a foreign ONNX model that neither onnx nor onnxruntime makes before it stops or hangs."""

import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from onnx import FunctionProto, GraphProto, ModelProto, TensorProto

from ..exceptions import ConversionError
from ..graphs import TensorType, count_nodes, subgraphs
from ..graphs.external_tensors import is_mapped, tensor_array
from ..graphs.files import MAX_MESSAGE

MAX_NODES = 100_000  # nodes of a model, its functions inlined
MAX_DEPTH = 50  # graphs within graphs, and functions that call functions
MAX_BYTES = 2**37  # bytes of a tensor where the memory of the machine is not known
MAX_VECTOR = 2**24  # elements of a vector: onnx follows the values of each in its inference of shapes
#: Fields of bytes that are texts.
_TEXTS = {"onnx.AttributeProto.s", "onnx.AttributeProto.strings", "onnx.TensorProto.string_data"}


def check_structure(model: ModelProto, label: str) -> None:
    """Raise a ConversionError for invalid names, tensors without their values, and too many nodes."""
    for tensor in _tensors(model, label):
        problem = _tensor_problem(tensor)
        if problem:
            raise ConversionError(f"{label} hold a tensor {tensor.name!r} that {problem}.")
    total = _inlined_nodes(model, label)
    if total > MAX_NODES:
        raise ConversionError(
            f"{label} have {total} nodes once their functions are inlined, more than {MAX_NODES}: "
            "export a smaller model."
        )


def check_total(model: ModelProto, label: str) -> None:
    """Raise a ConversionError for weights in memory of more than a protobuf message."""
    total = sum(0 if is_mapped(tensor) else stored_bytes(tensor) for tensor in _tensors(model, label))
    if total > MAX_MESSAGE:
        raise ConversionError(
            f"{label} have {total / 2**30:.3g} GiB of weights in memory, and a model holds up to 2 GiB: save "
            "it with its weights in a file of their own (onnx.save, save_as_external_data=True), as "
            "initializers in float32 or float64, and pass its path."
        )


def stored_bytes(tensor: TensorProto) -> int:
    """Return the bytes of the values of a tensor, here or in another file."""
    stored = {entry.key: entry.value for entry in tensor.external_data}.get("length", "")
    return int(stored) if stored.isdecimal() else len(tensor.raw_data)


def check_sizes(types: Mapping[str, TensorType], label: str) -> None:
    """Raise a ConversionError for tensors that do not fit into memory, whatever the number of samples."""
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


def _tensors(message: Any, label: str) -> Iterator[TensorProto]:
    """Yield the tensors of a message; reading its fields finds texts that are none."""
    parts: list[Any] = []
    try:
        for field, value in message.ListFields():
            values = [value] if isinstance(value, str | bytes) or hasattr(value, "ListFields") else value
            if field.message_type is not None:
                parts += values
            elif field.type == field.TYPE_STRING or field.full_name in _TEXTS:
                for text in values:
                    text.encode() if isinstance(text, str) else text.decode()
    except UnicodeError as error:
        raise ConversionError(
            f"{label} hold a text in a {type(message).__name__} that is not UTF-8: {error}."
        ) from error
    for part in parts:
        if isinstance(part, TensorProto):
            yield part
        yield from _tensors(part, label)


def _tensor_problem(tensor: TensorProto) -> str | None:
    """Return what is wrong with a tensor."""
    if is_mapped(tensor):
        return None
    if tensor.data_location == TensorProto.EXTERNAL:
        return "keeps its values in another file: pass the path of the model"
    if any(size < 0 for size in tensor.dims):
        return f"has the negative size {list(tensor.dims)}"
    try:
        tensor_array(tensor)
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        return f"has values that do not fit its type {tensor.data_type} and shape {tensor.dims}: {error}"
    return None


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
