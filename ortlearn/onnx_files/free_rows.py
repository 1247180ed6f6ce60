"""Files whose number of samples is fixed, as exporters write what they were shown, for any number of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from onnx import ModelProto, NodeProto, ValueInfoProto, numpy_helper

from ..exceptions import ConversionError
from ..graphs import GraphBuilder, TensorType, copy_model, graph_names, node_inputs, value_types
from ..graphs.editing import with_fields
from ..graphs.nodes import constant_value, copy_node

#: Name of the number of samples.
ROWS = "rows"


def with_free_rows(model: ModelProto) -> ModelProto:
    """Return the model for any number of samples, where nothing in it depends on the one that it declares.

    The first dimension of inputs and outputs becomes a name. Constants of Reshape and Expand that repeat the
    number follow. The model stays as it is where its inputs have other first dimensions than one another, or
    where an output keeps the declared number: :func:`check_free_rows` says what it depends on.

    Types of inner tensors, which repeat the number, are removed.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model with free or with fixed first dimensions.
    """
    model = with_fields(model, value_info=())
    declared = _declared(model)
    if len(declared) != 1 or (_has_free_input(model) and declared != {1}):
        return model
    (number,) = declared
    free = _reshaped(_named(model), number)
    return model if _culprit(free) is not None else free


def check_free_rows(model: ModelProto) -> None:
    """Raise a ConversionError where :func:`with_free_rows` has left the number of samples fixed.

    The message names the node that fixes it.
    """
    declared = _declared(model)
    if not declared or _has_free_input(model):
        return
    if len(declared) > 1:
        shapes = {v.name: [d.dim_value or d.dim_param or None for d in _dims(v)] for v in _own_inputs(model)}
        raise ConversionError(
            f"The inputs of the model have other fixed first dimensions than one another, {shapes}: which of "
            "them is the number of samples is not known. Export the model with a free first dimension."
        )
    (number,) = declared
    node = _culprit(_reshaped(_named(model), number))
    if node is not None:
        raise ConversionError(
            f"The model takes {number} sample(s) at a time, and {node.op_type} (node {node.name!r}, output "
            f"{node.output[0]!r}) depends on that number: export the model with a free first dimension."
        )


def _dims(value: ValueInfoProto):
    return value.type.tensor_type.shape.dim


def _own_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """Return the inputs that are no weights too, and have dimensions."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights and _dims(value)]


def _declared(model: ModelProto) -> set[int]:
    """Return the fixed first dimensions of inputs."""
    return {_dims(v)[0].dim_value for v in _own_inputs(model) if _dims(v)[0].HasField("dim_value")}


def _has_free_input(model: ModelProto) -> bool:
    return any(not _dims(value)[0].HasField("dim_value") for value in _own_inputs(model))


def _named(model: ModelProto) -> ModelProto:
    """Return a model whose inputs and outputs have a name as their first dimension."""
    result = copy_model(model)
    for value in (*_own_inputs(result), *result.graph.output):
        if _dims(value) and _dims(value)[0].HasField("dim_value"):
            _dims(value)[0].dim_param = ROWS
    return result


def _reshaped(model: ModelProto, number: int) -> ModelProto:
    """Return a model whose constant shapes do not repeat the number of samples where rows come first."""
    op = GraphBuilder(existing_names=graph_names(model.graph))
    shapes = {t.name: t for t in model.graph.initializer}
    made = {node.output[0]: node for node in model.graph.node if node.op_type == "Constant" and node.output}
    nodes, types = list(model.graph.node), value_types(model)
    for index, node in enumerate(nodes):
        if node.op_type not in ("Reshape", "Expand") or len(node.input) < 2:
            continue
        name = node.input[1]
        array = numpy_helper.to_array(shapes[name]) if name in shapes else None
        array = constant_value(made[name]) if name in made else array
        if array is None or array.ndim != 1 or not array.size or array[0] != number:
            continue
        if _first(types, node.input[0]) != ROWS:
            continue
        free = op.constant(np.array([0 if node.op_type == "Reshape" else 1, *array[1:]], dtype=np.int64))
        nodes[index] = copy_node(node, [node.input[0], free])
        model = with_fields(model, node=nodes, initializer=[*model.graph.initializer, *op.initializers])
        op.initializers.clear()
        types = value_types(model)
    return model


def _first(types: Mapping[str, TensorType], name: str) -> int | str | None:
    known = types.get(name)
    return known.shape[0] if known is not None and known.shape else None


def _culprit(model: ModelProto) -> NodeProto | None:
    """Return the first node that makes a tensor with a fixed number of rows of one with any number."""
    bare = copy_model(model)
    for value in bare.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    types = value_types(bare)
    needed: set[str] = set()
    for value in model.graph.output:
        if _dims(value) and _dims(value)[0].dim_param == ROWS and isinstance(_first(types, value.name), int):
            needed.add(value.name)
    found = None
    for node in reversed(model.graph.node):
        if needed.isdisjoint(node.output):
            continue
        needed |= node_inputs(node)
        if _makes_fixed(types, node.input, node.output):
            found = node
    return found


def _makes_fixed(types: Mapping[str, TensorType], inputs: Iterable[str], outputs: Iterable[str]) -> bool:
    """Return whether an input has named dimensions and an output, of a fixed first one, has none."""
    read = [types[name].shape or () for name in inputs if name in types]
    made = [types[name].shape or () for name in outputs if name in types]
    return any(ROWS in shape for shape in read) and any(
        shape and isinstance(shape[0], int) and ROWS not in shape for shape in made
    )
