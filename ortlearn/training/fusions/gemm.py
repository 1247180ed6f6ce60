"""Products with what is added to them as one Gemm: forward sums, and gradients with their update."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from .editable_graph import EditableGraph

__all__ = ["fuse_matmul_add", "fuse_updates"]


def _gemm_attributes(node: NodeProto) -> dict[str, float]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def fuse_matmul_add(graph: EditableGraph) -> None:
    """Write ``MatMul(x, w) + b`` of matrices as ``Gemm(x, w, b)``."""
    nodes: list[NodeProto] = []
    for node in graph.nodes:
        nodes.append(_matmul_add(graph, node) or node)
    graph.replace(nodes)


def _matmul_add(graph: EditableGraph, node: NodeProto) -> NodeProto | None:
    if node.op_type != "Add" or node.domain != "":
        return None
    for position, name in enumerate(node.input):
        product = graph.producer(name, "MatMul")
        if product is None or not graph.read_once(name):
            continue
        bias = node.input[1 - position]
        shapes = [graph.shape(n) for n in (*product.input, bias)]
        if any(shape is None for shape in shapes) or [len(shape or ()) for shape in shapes[:2]] != [2, 2]:
            continue
        # A third operand of Gemm is broadcast to the product, never the other way.
        if graph.shape(name) == graph.shape(node.output[0]) and graph.is_float(name):
            return graph.make("Gemm", *product.input, bias, like=name, output=node.output[0])[0]
    return None


def fuse_updates(graph: EditableGraph) -> None:
    """Write ``w - gradient`` and ``momentum * v - gradient`` as one Gemm with the gradient's product.

    With the learning rate in the gradient of the loss, ``v = momentum * v - h^T g`` is
    ``Gemm(h, g, v, transA=1, alpha=-1, beta=momentum)``. A gradient that sums over a batch of a
    known size is a product with ones.
    """
    nodes: list[NodeProto] = []
    for node in graph.nodes:
        nodes.append(_fused_update(graph, node) or node)
    graph.replace(nodes)


def _fused_update(graph: EditableGraph, node: NodeProto) -> NodeProto | None:
    if node.op_type != "Sub" or node.domain != "":
        return None
    kept, gradient = node.input
    shape = graph.shape(node.output[0])
    if shape is None or len(shape) != 2 or not graph.read_once(gradient):
        return None
    if graph.shape(kept) != shape or graph.shape(gradient) != shape:
        return None
    beta, product = 1.0, graph.producer(kept, "Mul")
    if product is not None and graph.read_once(kept):
        factor = graph.value(product.input[1])
        # Attributes are float32: another factor would be rounded.
        if factor is not None and factor.size == 1 and float(np.float32(factor.item())) == factor.item():
            beta, kept = factor.item(), product.input[0]
    operands = _product_of(graph, gradient)
    if operands is None:
        return None
    inputs, attributes = operands
    alpha = -float(attributes.pop("alpha", 1.0))
    return graph.make(
        "Gemm",
        *inputs,
        kept,
        like=node.output[0],
        output=node.output[0],
        alpha=alpha,
        beta=beta,
        **attributes,
    )[0]


def _product_of(graph: EditableGraph, gradient: str) -> tuple[list[str], dict] | None:
    """Return a gradient as the operands and attributes of a Gemm without a third operand."""
    gemm = graph.producer(gradient, "Gemm")
    if gemm is not None:
        attributes = _gemm_attributes(gemm)
        attributes.pop("beta", None)
        return (list(gemm.input), attributes) if len(gemm.input) == 2 else None
    total = graph.producer(gradient, "ReduceSum")
    if total is None or len(total.input) != 2 or not graph.is_float(gradient):
        return None
    axes, shape = graph.value(total.input[1]), graph.shape(total.input[0])
    known = graph.type(gradient)
    if axes is None or axes.tolist() != [0] or shape is None or len(shape) != 2 or known is None:
        return None
    ones = np.ones((shape[0], 1), dtype=helper.tensor_dtype_to_np_dtype(known.elem_type))
    return [graph.constant(ones), total.input[0]], {"transA": 1}
