"""Small models of the tests."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper, parser

__all__ = ["chain", "mlp", "parse"]


def parse(text: str, opset: int = 18):
    """Return the model of a graph in textual syntax."""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')


def mlp(sizes=(100, 50, 10, 1), dtype=np.float32, batch="N"):
    """Return a multi-layer perceptron with Relu and a squared loss, and the names of its weights."""
    rng = np.random.default_rng(0)
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes, weights, value = [], [], "X"
    for i, (before, after) in enumerate(zip(sizes, sizes[1:], strict=False)):
        kernel = rng.normal(size=(before, after)) / before**0.5
        weights.append(numpy_helper.from_array(kernel.astype(dtype), f"W{i}"))
        weights.append(numpy_helper.from_array(rng.normal(size=after).astype(dtype), f"b{i}"))
        nodes.append(helper.make_node("MatMul", [value, f"W{i}"], [f"product{i}"]))
        nodes.append(helper.make_node("Add", [f"product{i}", f"b{i}"], [f"sum{i}"]))
        value = f"sum{i}"
        if i < len(sizes) - 2:
            nodes.append(helper.make_node("Relu", [value], [f"hidden{i}"]))
            value = f"hidden{i}"
    nodes.append(helper.make_node("Sub", [value, "y"], ["difference"]))
    nodes.append(helper.make_node("Mul", ["difference", "difference"], ["squares"]))
    nodes.append(helper.make_node("ReduceSum", ["squares"], ["loss"], keepdims=0))
    inputs = [
        helper.make_tensor_value_info("X", elem_type, [batch, sizes[0]]),
        helper.make_tensor_value_info("y", elem_type, [batch, sizes[-1]]),
    ]
    loss = helper.make_tensor_value_info("loss", elem_type, [])
    graph = helper.make_graph(nodes, "mlp", inputs, [loss], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return model, [tensor.name for tensor in weights]


def chain(length: int):
    """Return a model of many products with weights and activations."""
    nodes = []
    for i in range(0, length, 2):
        nodes.append(helper.make_node("Mul", [f"v{i}", "w"], [f"v{i + 1}"]))
        nodes.append(helper.make_node("Tanh", [f"v{i + 1}"], [f"v{i + 2}"]))
    nodes.append(helper.make_node("ReduceSum", [f"v{length}"], ["y"], keepdims=0))
    x = helper.make_tensor_value_info("v0", TensorProto.DOUBLE, ["N", 3])
    y = helper.make_tensor_value_info("y", TensorProto.DOUBLE, [])
    graph = helper.make_graph(nodes, "chain", [x], [y], [numpy_helper.from_array(np.full(3, 0.9), "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
