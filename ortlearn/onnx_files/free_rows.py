"""Make a fixed number of samples of a file, as exporters write it, free."""

from collections.abc import Mapping

from onnx import ModelProto, NodeProto, TensorShapeProto, ValueInfoProto

from ..exceptions import ConversionError
from ..graphs import TensorType, copy_model, value_types
from ..graphs.editing import with_fields
from ..graphs.nodes import needed_nodes
from .sample_constants import with_following_constants

ROWS = "rows"  # name of the number of samples
LARGEST = 2**31  # number of samples of an input


def with_free_rows(model: ModelProto, required: bool = False) -> ModelProto:
    """Return the model for any number of samples, unchanged if it depends on the declared number."""
    # The first dimension of inputs and outputs becomes a name, constants that repeat the number follow. If
    # free rows are required, a ConversionError names the input or node that fixes the number.
    model = with_fields(model, value_info=())
    inputs = _own_inputs(model)
    fixed = {
        v.name: [d.dim_value or d.dim_param or None for d in _dims(v)] for v in inputs if _is_fixed_input(v)
    }
    declared = {_dims(value)[0].dim_value for value in inputs if _is_fixed_input(value)}
    has_free = len(fixed) < len(inputs)
    if not declared:
        return with_following_constants(model, None)[0]
    if has_free and declared != {1}:
        if required:
            name, shape = next(iter(fixed.items()))
            raise ConversionError(
                f"Input {name!r} has the shape {shape}, and other inputs take any number of samples: it has "
                "no rows of samples. Give it the value that all of them share: file.graph.initializer.append("
                f"onnx.numpy_helper.from_array(value, {name!r}))."
            )
        return model
    if len(declared) > 1:
        if required:
            raise ConversionError(
                f"The inputs of the model have other fixed first dimensions than one another, {fixed}: which "
                "of them is the number of samples is not known. Export the model with a free first dimension."
            )
        return model
    (number,) = declared
    free, node = _freed(model, number)
    if node is not None and required and not has_free:
        raise ConversionError(
            f"The model takes {number} sample(s) at a time, and {node.op_type} (node {node.name!r}, output "
            f"{node.output[0]!r}) depends on that number: export the model with a free first dimension."
        )
    return free if node is None else model


def _dims(value: ValueInfoProto) -> list[TensorShapeProto.Dimension]:
    return list(value.type.tensor_type.shape.dim)


def _is_fixed_input(value: ValueInfoProto) -> bool:
    return _dims(value)[0].HasField("dim_value")


def _own_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """Return the inputs with dimensions that are not also weights."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights and _dims(value)]


def _freed(model: ModelProto, number: int) -> tuple[ModelProto, NodeProto | None]:
    """Return a model of any number of samples, and a node that still depends on the number, if any."""
    if number > LARGEST:
        raise ConversionError(
            f"An input of the model takes {number} samples at a time, more than fit into memory: the file "
            "is damaged."
        )
    named = copy_model(model)
    for value in (*_own_inputs(named), *named.graph.output):
        if _dims(value) and _dims(value)[0].HasField("dim_value"):
            _dims(value)[0].dim_param = ROWS
    free, node = with_following_constants(named, number)
    return free, node or _culprit(free)


def _culprit(model: ModelProto) -> NodeProto | None:
    """Return the first node that maps any number of rows to a fixed one."""
    bare = copy_model(model)
    for value in bare.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    types = value_types(bare)
    free = [v.name for v in model.graph.output if _dims(v) and _dims(v)[0].dim_param == ROWS]
    nodes = needed_nodes(model.graph.node, [name for name in free if _is_fixed(types, name)])
    return next((node for node in nodes if _fixes(types, node)), None)


def _is_fixed(types: Mapping[str, TensorType], name: str) -> bool:
    shape = (types[name].shape if name in types else None) or (None,)
    return isinstance(shape[0], int) and ROWS not in shape


def _fixes(types: Mapping[str, TensorType], node: NodeProto) -> bool:
    """Return whether a node has an input of any number of rows, and an output of a fixed number."""
    read = [types[name].shape or () for name in node.input if name in types]
    return any(ROWS in shape for shape in read) and any(_is_fixed(types, name) for name in node.output)
