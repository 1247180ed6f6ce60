"""Files whose number of samples is fixed, as exporters write what they were shown, for any number of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorShapeProto, ValueInfoProto

from ..exceptions import ConversionError
from ..graphs import TensorType, copy_model, value_types
from ..graphs.editing import with_fields
from ..graphs.nodes import copy_node, needed_nodes
from ..graphs.view import GraphView

#: Name of the number of samples.
ROWS = "rows"


def with_free_rows(model: ModelProto, required: bool = False) -> ModelProto:
    """Return the model for any number of samples, where nothing in it depends on the one that it declares.

    The first dimension of inputs and outputs becomes a name. Constants of Reshape and Expand that repeat the
    number follow, types of inner tensors are removed. The model stays as it is where its inputs have other
    first dimensions than one another, or where an output keeps the declared number; if free rows are
    ``required``, and no input has them, a ConversionError says what fixes the number.
    """
    model = with_fields(model, value_info=())
    inputs = _own_inputs(model)
    rows = [_dims(value)[0] for value in inputs]
    declared = {dim.dim_value for dim in rows if dim.HasField("dim_value")}
    has_free = not all(dim.HasField("dim_value") for dim in rows)
    required = required and not has_free
    if len(declared) > 1 and required:
        shapes = {v.name: [d.dim_value or d.dim_param or None for d in _dims(v)] for v in inputs}
        raise ConversionError(
            f"The inputs of the model have other fixed first dimensions than one another, {shapes}: which of "
            "them is the number of samples is not known. Export the model with a free first dimension."
        )
    if len(declared) != 1 or (declared != {1} and has_free):
        return model
    (number,) = declared
    free = _freed(model, number)
    node = _culprit(free)
    if node is not None and required:
        raise ConversionError(
            f"The model takes {number} sample(s) at a time, and {node.op_type} (node {node.name!r}, output "
            f"{node.output[0]!r}) depends on that number: export the model with a free first dimension."
        )
    return free if node is None else model


def _dims(value: ValueInfoProto) -> list[TensorShapeProto.Dimension]:
    return list(value.type.tensor_type.shape.dim)


def _own_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """Return the inputs that are no weights too, and have dimensions."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights and _dims(value)]


def _freed(model: ModelProto, number: int) -> ModelProto:
    """Return a model whose inputs and outputs, and constant shapes, do not repeat the number of samples."""
    named = copy_model(model)
    for value in (*_own_inputs(named), *named.graph.output):
        if _dims(value) and _dims(value)[0].HasField("dim_value"):
            _dims(value)[0].dim_param = ROWS
    graph = GraphView(named)
    for index, node in enumerate(named.graph.node):
        if node.op_type not in ("Reshape", "Expand") or len(node.input) < 2:
            continue
        shape = graph.value(node.input[1])
        repeats = shape is not None and shape.ndim == 1 and shape.size > 0 and shape[0] == number
        if shape is not None and repeats and (graph.op.shape(node.input[0]) or (0,))[0] == ROWS:
            own = np.array([0 if node.op_type == "Reshape" else 1, *shape[1:]], dtype=np.int64)
            graph.nodes[index] = copy_node(node, [node.input[0], graph.op.constant(own)])
            graph = GraphView(graph.to_model())  # with the types that follow
    return graph.to_model()


def _culprit(model: ModelProto) -> NodeProto | None:
    """Return the first node that makes a tensor with a fixed number of rows of one with any number."""
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
    """Return whether an input has named dimensions and an output, of a fixed first one, has none."""
    read = [types[name].shape or () for name in node.input if name in types]
    return any(ROWS in shape for shape in read) and any(_is_fixed(types, name) for name in node.output)
