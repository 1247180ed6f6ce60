"""Replace a fixed number of samples, as some exporters write it, by a dynamic one."""

from collections.abc import Mapping

from onnx import ModelProto, NodeProto, TensorShapeProto, ValueInfoProto

from ..exceptions import ConversionError, limit_address
from ..graphs import TensorType, copy_model, value_types
from ..graphs.editing import with_fields
from ..graphs.nodes import needed_nodes
from .sample_constants import without_sample_constants

ROWS = "rows"  # name of the number of samples
LARGEST = 2**31  # largest declared number of samples


def with_dynamic_batch(model: ModelProto, required: bool = False) -> ModelProto:
    """Return the model for any number of samples, unchanged if it depends on the declared number."""
    # The first dimension of inputs and outputs becomes symbolic, and constants that repeat it are replaced.
    # If required, a ConversionError names the input or the node that fixes the number.
    model = with_fields(model, value_info=())
    inputs = _own_inputs(model)
    fixed = {
        v.name: [d.dim_value or d.dim_param or None for d in _dims(v)] for v in inputs if _is_fixed_input(v)
    }
    declared = {_dims(value)[0].dim_value for value in inputs if _is_fixed_input(value)}
    has_dynamic = len(fixed) < len(inputs)
    if not declared:
        return without_sample_constants(model, None)[0]
    if len(declared) > 1 or (has_dynamic and declared != {1}):
        if required:
            raise ConversionError(_fault_of_inputs(fixed, has_dynamic))
        return model
    (number,) = declared
    dynamic, node = _dynamic(model, number)
    if node is not None and required and not has_dynamic:
        raise ConversionError(
            f"The model takes {number} sample(s) at a time, and {node.op_type} (node {node.name!r}, output "
            f"{node.output[0]!r}) depends on that number: export the model with a free first dimension."
            f"{limit_address('fixed-samples')}"
        )
    return dynamic if node is None else model


def _fault_of_inputs(fixed: Mapping[str, list], has_dynamic: bool) -> str:
    """Return the message about inputs with contradictory first dimensions."""
    if has_dynamic:
        name, shape = next(iter(fixed.items()))
        return (
            f"Input {name!r} has the shape {shape}, without a dimension of samples, unlike other inputs. Set "
            "the value that all samples share: file.graph.initializer.append("
            f"onnx.numpy_helper.from_array(value, {name!r}))."
        )
    return (
        f"The fixed first dimensions of the inputs differ, {fixed}, so the number of samples is unknown. "
        "Export the model with a free first dimension."
    )


def _dims(value: ValueInfoProto) -> list[TensorShapeProto.Dimension]:
    return list(value.type.tensor_type.shape.dim)


def _is_fixed_input(value: ValueInfoProto) -> bool:
    return _dims(value)[0].HasField("dim_value")


def _own_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """Return the inputs, except scalars and those with a default value."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights and _dims(value)]


def _dynamic(model: ModelProto, number: int) -> tuple[ModelProto, NodeProto | None]:
    """Return a model of any number of samples, and a node that still depends on the number, if any."""
    if number > LARGEST:
        raise ConversionError(
            f"An input of the model takes {number} samples at a time, which do not fit into memory. The file "
            "is damaged: export it again."
        )
    named = copy_model(model)
    for value in (*_own_inputs(named), *named.graph.output):
        if _dims(value) and _dims(value)[0].HasField("dim_value"):
            _dims(value)[0].dim_param = ROWS
    dynamic, node = without_sample_constants(named, number)
    return dynamic, node or _culprit(dynamic)


def _culprit(model: ModelProto) -> NodeProto | None:
    """Return the first node that maps a dynamic number of samples to a fixed one."""
    bare = copy_model(model)
    for value in bare.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    types = value_types(bare)
    names = [v.name for v in model.graph.output if _dims(v) and _dims(v)[0].dim_param == ROWS]
    nodes = needed_nodes(model.graph.node, [name for name in names if _is_fixed(types, name)])
    return next((node for node in nodes if _fixes(types, node)), None)


def _is_fixed(types: Mapping[str, TensorType], name: str) -> bool:
    shape = (types[name].shape if name in types else None) or (None,)
    return isinstance(shape[0], int) and ROWS not in shape


def _fixes(types: Mapping[str, TensorType], node: NodeProto) -> bool:
    """Return whether a node has an input with a dynamic number of samples, and an output with a fixed one."""
    read = [types[name].shape or () for name in node.input if name in types]
    return any(ROWS in shape for shape in read) and any(_is_fixed(types, name) for name in node.output)
