"""Checks of ONNX models for faults with which onnx or onnxruntime would crash or hang."""

import math
from collections.abc import Iterator, Mapping

from onnx import FunctionProto, GraphProto, ModelProto, TensorProto

from ..exceptions import ConversionError
from ..graphs import TensorType, count_nodes, subgraphs
from ..graphs.external_tensors import is_mapped, tensor_array
from ..graphs.files import MAX_MESSAGE
from ..graphs.messages import message_tensors
from ..runtime.machine import memory_bytes

MAX_NODES = 100_000  # nodes of a model with inlined functions
MAX_DEPTH = 50  # depth of nested subgraphs and function calls
MAX_VECTOR = 2**24  # elements of a vector, whose values onnx propagates in shape inference


def check_structure(model: ModelProto, label: str) -> None:
    """Raise a ConversionError for invalid text, invalid tensors and too many nodes."""
    for tensor in _tensors(model, label):
        problem = _tensor_problem(tensor)
        if problem:
            raise ConversionError(f"{label} have a tensor {tensor.name!r} that {problem}.")
    total = _inlined_nodes(model, label)
    if total > MAX_NODES:
        raise ConversionError(
            f"{label} have {total} nodes with inlined functions, more than {MAX_NODES}: "
            "export a smaller model."
        )


def check_total(model: ModelProto, label: str) -> None:
    """Raise a ConversionError if the weights in memory exceed the size of a protobuf message."""
    total = sum(0 if is_mapped(tensor) else stored_bytes(tensor) for tensor in _tensors(model, label))
    if total > MAX_MESSAGE:
        raise ConversionError(
            f"{label} have {total / 2**30:.3g} GiB of weights in memory, more than the limit of 2 GiB: save "
            "the model with external data (onnx.save, save_as_external_data=True), its weights as float32 or "
            "float64 initializers, and pass its path."
        )


def stored_bytes(tensor: TensorProto) -> int:
    """Return the size of the values of a tensor in bytes, in memory or as external data."""
    stored = {entry.key: entry.value for entry in tensor.external_data}.get("length", "")
    return int(stored) if stored.isdecimal() else len(tensor.raw_data)


def check_sizes(types: Mapping[str, TensorType], label: str) -> None:
    """Raise a ConversionError for tensors that do not fit into memory for any number of samples."""
    limit = memory_bytes()
    for name, known in types.items():
        sizes = [size for size in known.shape or () if isinstance(size, int)]
        if any(size < 0 for size in sizes):
            raise ConversionError(f"{label} have a tensor {name!r} with a negative size: {known.shape}.")
        if len(known.shape or ()) == 1 and math.prod(sizes) > MAX_VECTOR:
            raise ConversionError(f"{label} have a vector {name!r} of {sizes[0]} elements: shorten it.")
        n_bytes = math.prod(sizes) * 4
        if n_bytes > limit:
            raise ConversionError(
                f"{label} have a tensor {name!r} of shape {known.shape}, whose {n_bytes / 2**30:.3g} GiB "
                f"exceed the {limit / 2**30:.3g} GiB of this machine: correct the sizes in the model."
            )


def _tensors(model: ModelProto, label: str) -> Iterator[TensorProto]:
    """Yield the tensors of a model; raise a ConversionError for text that is not UTF-8."""
    try:
        yield from message_tensors(model)
    except ValueError as error:
        raise ConversionError(f"{label} have {error}.") from error


def _tensor_problem(tensor: TensorProto) -> str | None:
    """Return a description of the fault of a tensor, None without one."""
    if is_mapped(tensor):
        return None
    if tensor.data_location == TensorProto.EXTERNAL:
        return "has external data: pass the path of the model"
    if any(size < 0 for size in tensor.dims):
        return f"has the negative size {list(tensor.dims)}"
    try:
        tensor_array(tensor)
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        return f"has invalid values for its type {tensor.data_type} and shape {tensor.dims}: {error}"
    return None


def _inlined_nodes(model: ModelProto, label: str) -> int:
    """Return the number of nodes that inlining of functions would result in."""
    functions = {(f.domain, f.name): f for f in model.functions}
    counts: dict[tuple[str, str], int] = {}

    def size(part: FunctionProto | GraphProto, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise ConversionError(
                f"{label} have recursive functions, or functions and subgraphs nested deeper than "
                f"{MAX_DEPTH}: export the model without them."
            )
        total = 0
        for node in part.node:
            key = node.domain, node.op_type
            if key in functions and key not in counts:
                counts[key] = size(functions[key], depth + 1)
            total += counts.get(key, 1) + sum(size(inner, depth + 1) for inner in subgraphs(node))
        return total

    return size(model.graph, 0) if functions else count_nodes(model.graph)
