"""Read an ONNX model from an object, bytes or a file."""

import os
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto, helper

from ..differentiation.types.inference import infer_types
from ..exceptions import ConversionError
from ..graphs import opset_versions, value_types
from ..graphs.editing import copy_model
from ..graphs.external_tensors import external_initializers, keep_external, without_external
from ..graphs.files import MAX_MESSAGE
from ..graphs.nodes import all_nodes
from ..runtime.errors import runtime_errors
from .declared_sizes import without_placeholders
from .dynamic_batch import with_dynamic_batch
from .half_precision import with_float32
from .model_checks import check_sizes, check_structure, check_total, stored_bytes
from .named_weights import with_named_weights
from .operator_checks import check_operators
from .simplify import with_chosen_branches
from .sparse_weights import with_dense_weights
from .versions import pin_versions, upgraded, with_definitions

#: Minimum size in bytes of initializers that are not loaded, in models too large for a protobuf message.
LARGE = 2**20
#: Entry of the metadata of a file with intervals or sets, as JSON.
INTERVALS = "interval_outputs"
#: Operators that onnxruntime defines in the domain of onnx.
OF_RUNTIME, MICROSOFT = ("SimplifiedLayerNormalization",), "com.microsoft"


def is_onnx_source(source: Any) -> bool:
    """Return whether an object is a ModelProto, bytes or a path; paths are not opened."""
    return isinstance(source, ModelProto | bytes | bytearray | str | os.PathLike)


@runtime_errors()
def load_onnx(source: Any) -> ModelProto:
    """Return a checked copy of an ONNX model, converted to supported versions."""
    return prepare_onnx(*read_onnx(source))


@runtime_errors()
def prepare_onnx(model: ModelProto, label: str, integers: bool = False, trainable: bool = True) -> ModelProto:
    """Return a checked copy of a model at supported versions; ``integers`` become rounded floats."""
    # If trainable, float16 becomes float32, and a fixed number of samples becomes free.
    check_total(model, label)
    check_structure(model, label)
    if not model.graph.node or not model.graph.output:
        raise ConversionError(f"{label} are not an ONNX model: the graph has no node or no output.")
    model = with_dense_weights(without_placeholders(model))
    try:
        onnx.checker.check_model(_for_checker(model))
    except onnx.checker.ValidationError as error:
        raise ConversionError(f"{label} are not a valid ONNX model: {error}") from error
    model = with_named_weights(model, integers)  # check_structure limits the number of nodes
    model = with_float32(model) if trainable else model
    model = pin_versions(model) if trainable else with_definitions(upgraded(model))
    model = with_chosen_branches(_without_zipmap(without_record(model)))
    model = with_dynamic_batch(model) if trainable else model
    check_operators(model, {}, label)  # onnx crashes on some of these faults
    check_sizes(value_types(model), label)
    types = value_types(infer_types(model), infer=False)
    check_sizes(types, label)
    check_operators(model, types, label)
    return model


def _for_checker(model: ModelProto) -> ModelProto:
    """Return a model without the parts that onnxruntime accepts, but not the checker of onnx."""
    # These are external data, tensors without a declared shape, and operators of OF_RUNTIME.
    light = copy_model(without_external(model))
    for value in (*light.graph.input, *light.graph.output):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.shape.SetInParent()
    for node in (node for node in all_nodes(light.graph) if node.op_type in OF_RUNTIME):
        node.domain = MICROSOFT
        if MICROSOFT not in opset_versions(light):
            light.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    return light


def without_record(model: ModelProto) -> ModelProto:
    """Return a copy of a model without the measurements of a checkpoint, which training invalidates."""
    model = copy_model(model)
    for entry in [entry for entry in model.metadata_props if entry.key.startswith("ortlearn.")]:
        model.metadata_props.remove(entry)
    return model


def _without_zipmap(model: ModelProto) -> ModelProto:
    """Return a classifier whose probabilities are a matrix instead of a dictionary per sample."""
    model = copy_model(model)
    maps = {node.output[0]: node for node in model.graph.node if node.op_type == "ZipMap"}
    for name, node in maps.items():
        node.CopyFrom(helper.make_node("Identity", node.input, [name], node.name))
    for value in model.graph.output:
        if value.name in maps:
            value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, None))
    return model


def read_onnx(source: Any) -> tuple[ModelProto, str]:
    """Return an unchecked ONNX model, with all tensors, and its description for error messages."""
    if isinstance(source, ModelProto):
        return source, "The contents of the ModelProto given"
    if isinstance(source, bytes | bytearray):
        return _parse(bytes(source), "The bytes given"), "The bytes given"
    if not is_onnx_source(source):
        raise ConversionError(
            f"{source!r:.80} is not an ONNX file: pass its path, its bytes or a ModelProto. "
            "OrtGradientOptimizer converts estimators of scikit-learn: get_trained_onnx returns the graph."
        )
    path = Path(source)
    try:
        if path.exists() and not path.is_file():  # pipes and devices may be endless
            raise ValueError("it is not a regular file")
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: invalid file name
        reason = getattr(error, "strerror", None) or error
        raise ConversionError(f"The ONNX file {str(path)!r} cannot be read: {reason}.") from error
    label = f"The contents of {str(path)!r}"
    model = _parse(content, label)
    mapped = _large_tensors(model)
    for tensor in mapped:
        keep_external(tensor, path.parent)
    check_total(model, label)
    for tensor in mapped:  # skipped by load_external_data_for_model
        tensor.data_location = TensorProto.DEFAULT
    try:  # external data
        onnx.load_external_data_for_model(model, str(path.parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise ConversionError(f"{label} lack the file of some weights: {error}") from error
    for tensor in mapped:
        tensor.data_location = TensorProto.EXTERNAL
    return model, label


def _large_tensors(model: ModelProto) -> list[TensorProto]:
    """Return the initializers to leave in their files if a model is too large for a protobuf message."""
    external = external_initializers(model)
    if sum(map(stored_bytes, external)) <= MAX_MESSAGE:
        return []
    floats = (TensorProto.FLOAT, TensorProto.DOUBLE)
    return [tensor for tensor in external if tensor.data_type in floats and stored_bytes(tensor) >= LARGE]


def _parse(content: bytes, label: str) -> ModelProto:
    try:
        return onnx.load_from_string(content)
    except (DecodeError, ValueError) as error:
        raise ConversionError(f"{label} are not an ONNX model: {error}") from error
