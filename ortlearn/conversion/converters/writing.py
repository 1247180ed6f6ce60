"""Nodes in a graph that skl2onnx is writing."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from ...graphs import GraphBuilder
from ..versions import ML_OPSET, OPSET

__all__ = [
    "add_named_weight",
    "add_nodes",
    "add_weight",
    "float_input",
    "is_double",
    "new_builder",
    "start",
    "write_as",
    "write_output",
]


def new_builder(scope: Any) -> GraphBuilder:
    """Return a builder whose names are new in skl2onnx's graph."""
    return GraphBuilder(OPSET, prefix=f"{scope.get_unique_variable_name('own')}_")


def is_double(variable: Any) -> bool:
    """Tell whether a variable of skl2onnx is float64."""
    return type(variable.type).__name__ == "DoubleTensorType"


def float_input(op: GraphBuilder, operator: Any) -> str:
    """Return the input of an estimator as float32, whatever its type."""
    return op.Cast(operator.inputs[0].full_name, to=TensorProto.FLOAT)


def write_output(op: GraphBuilder, values: str, variable: Any) -> None:
    """Write float32 values as an output of an estimator, in its type."""
    kind = TensorProto.DOUBLE if is_double(variable) else TensorProto.FLOAT
    op.node("Cast", values, outputs=[variable.full_name], to=kind)


def start(scope: Any, operator: Any) -> tuple[GraphBuilder, str]:
    """Return a builder of the type of an estimator's input, float64 or float32, and that input."""
    op = new_builder(scope)
    if is_double(operator.inputs[0]):
        op.float_dtype = np.dtype(np.float64)
        return op, operator.inputs[0].full_name
    return op, float_input(op, operator)


def add_weight(op: GraphBuilder, stem: str, values: Any) -> str:
    """Add an initializer of its own, of the builder's floating-point type, and return its name."""
    array = np.ascontiguousarray(values, dtype=op.float_dtype)
    name = op.unique(stem)
    op.initializers.append(numpy_helper.from_array(array, name))
    return op.set_type(name, op.initializers[-1].data_type, array.shape)


def add_named_weight(op: GraphBuilder, scope: Any, stem: str, values: Any) -> str:
    """Add an initializer as :func:`add_weight` does, named as skl2onnx would name it."""
    name = scope.get_unique_variable_name(stem)
    op.initializers.append(numpy_helper.from_array(np.ascontiguousarray(values, dtype=op.float_dtype), name))
    return op.set_type(name, op.initializers[-1].data_type, np.shape(values))


def write_as(op: GraphBuilder, values: str, variable: Any) -> None:
    """Write values of either type as an output of an estimator, in its type."""
    kind = TensorProto.DOUBLE if is_double(variable) else TensorProto.FLOAT
    op.node("Cast", values, outputs=[variable.full_name], to=kind)


def add_nodes(container: Any, op: GraphBuilder) -> None:
    """Give the nodes and constants of a builder to skl2onnx."""
    # Not by its method for tensors, which loses those of text.
    container.initializers.extend(op.initializers)
    for node in op.nodes:
        container.add_node(
            node.op_type,
            list(node.input),
            list(node.output),
            op_domain=node.domain,
            op_version=ML_OPSET if node.domain else None,
            name=node.name,
            **{a.name: helper.get_attribute_value(a) for a in node.attribute},
        )
