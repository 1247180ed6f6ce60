"""Put constraints on the initializers of a graph, and take them off again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from ...graphs import (
    GraphBuilder,
    append_nodes,
    copy_model,
    graph_names,
    initializer_arrays,
    map_names,
    opset_versions,
    prune,
    replace_nodes,
)
from .base import Constraint

__all__ = ["constrain", "constrain_rows", "release"]


def constrain(model: ModelProto, constraints: Mapping[str, Constraint]) -> tuple[ModelProto, dict[str, str]]:
    """Return a model whose initializers are the free numbers of its parameters.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    constraints : mapping of str to Constraint
        Constraint by name of the initializer.

    Returns
    -------
    model : onnx.ModelProto
        Model that computes the same; initializers keep their names.
    parameters : dict of str to str
        Name of the tensor that is the parameter, by name of the initializer.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.models.constraints.signs import Positive
    >>> from ortlearn.models.constraints.reparametrisation import constrain
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,2] y) <float[2] variance = {1, 2}> { y = Div (x, variance) }''')
    >>> free, names = constrain(model, {"variance": Positive()})
    >>> [node.op_type for node in free.graph.node], names
    (['Exp', 'Div'], {'variance': 'Exp_0'})
    """
    if not constraints:
        return model, {}
    arrays = initializer_arrays(model, constraints)
    op = GraphBuilder(opset_versions(model).get("", 18), existing_names=graph_names(model.graph))
    free, parameters = {}, {}
    for name, constraint in constraints.items():
        dtype = arrays[name].dtype
        op.float_dtype = dtype
        free[name] = np.asarray(constraint.free(arrays[name]), dtype=dtype)
        op.set_type(name, helper.np_dtype_to_tensor_dtype(dtype), free[name].shape)
        parameters[name] = constraint.write(op, name)
    model = map_names(model, parameters)
    names = {parameter: name for name, parameter in parameters.items()}
    for tensor in model.graph.initializer:
        if tensor.name in names:
            name = names[tensor.name]
            tensor.CopyFrom(numpy_helper.from_array(free[name], name))
    return append_nodes(model, op, first=True), parameters


def constrain_rows(
    model: ModelProto, constraints: Mapping[str, Constraint], parameters: Mapping[str, str]
) -> ModelProto:
    """Return a model that computes the rows of large tables which it looks up, not the tables.

    Parameters
    ----------
    model : onnx.ModelProto
        What :func:`constrain` returned, or a part of it.
    constraints : mapping of str to Constraint
        Constraint by name of the initializer.
    parameters : mapping of str to str
        What :func:`constrain` returned.

    Returns
    -------
    onnx.ModelProto
        Model that computes the same.
    """
    tables = {parameters[name]: name for name, constraint in constraints.items() if constraint.by_row}

    def first_look_up(node: NodeProto, op: GraphBuilder) -> bool:
        name = tables.get(node.input[0])
        axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
        if name is None or axis:
            return False
        op.float_dtype = op.dtype(name) or op.float_dtype
        rows = op.Gather(name, node.input[1], axis=0)
        op.node("Identity", constraints[name].write(op, rows), outputs=list(node.output))
        return True

    return prune(replace_nodes(model, {("", "Gather"): first_look_up})) if tables else model


def release(
    model: ModelProto, constraints: Mapping[str, Constraint], parameters: Mapping[str, str]
) -> ModelProto:
    """Return a model whose initializers are its parameters again: the inverse of :func:`constrain`.

    Parameters
    ----------
    model : onnx.ModelProto
        Model, or a part of it.
    constraints : mapping of str to Constraint
        Constraint by name of the initializer.
    parameters : mapping of str to str
        What :func:`constrain` returned.

    Returns
    -------
    onnx.ModelProto
        Model that computes the same.
    """
    if not constraints:
        return model
    model = copy_model(model)
    for tensor in model.graph.initializer:
        if tensor.name in constraints:
            array = numpy_helper.to_array(tensor)
            values = np.asarray(constraints[tensor.name].values(array), dtype=array.dtype)
            parameter = parameters[tensor.name]
            tensor.CopyFrom(numpy_helper.from_array(values, parameter))
    computed = set(parameters.values())
    kept = [node for node in model.graph.node if computed.isdisjoint(node.output)]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return map_names(prune(model), {parameter: name for name, parameter in parameters.items()})
