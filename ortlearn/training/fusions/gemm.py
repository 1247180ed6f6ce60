"""Products with what is added to them as one Gemm: forward sums, and gradients with their update."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from .body import Body

__all__ = ["fuse_matmul_add", "fuse_updates"]


def _gemm_attributes(node: NodeProto) -> dict[str, float]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def fuse_matmul_add(body: Body) -> None:
    """Write ``MatMul(x, w) + b`` of matrices as ``Gemm(x, w, b)``."""
    nodes: list[NodeProto] = []
    for node in body.nodes:
        nodes.append(_matmul_add(body, node) or node)
    body.replace(nodes)


def _matmul_add(body: Body, node: NodeProto) -> NodeProto | None:
    if node.op_type != "Add" or node.domain != "":
        return None
    for position, name in enumerate(node.input):
        product = body.producer(name, "MatMul")
        if product is None or not body.read_once(name):
            continue
        bias = node.input[1 - position]
        shapes = [body.shape(n) for n in (*product.input, bias)]
        if any(shape is None for shape in shapes) or [len(shape or ()) for shape in shapes[:2]] != [2, 2]:
            continue
        # A third operand of Gemm is broadcast to the product, never the other way.
        if body.shape(name) == body.shape(node.output[0]) and body.is_float(name):
            return body.make("Gemm", *product.input, bias, like=name, output=node.output[0])[0]
    return None


def fuse_updates(body: Body) -> None:
    """Write ``w - gradient`` and ``momentum * v - gradient`` as one Gemm with the gradient's product.

    With the learning rate in the gradient of the loss, ``v = momentum * v - h^T g`` is
    ``Gemm(h, g, v, transA=1, alpha=-1, beta=momentum)``. A gradient that sums over a batch of a
    known size is a product with ones.
    """
    nodes: list[NodeProto] = []
    for node in body.nodes:
        nodes.append(_fused_update(body, node) or node)
    body.replace(nodes)


def _fused_update(body: Body, node: NodeProto) -> NodeProto | None:
    if node.op_type != "Sub" or node.domain != "":
        return None
    kept, gradient = node.input
    shape = body.shape(node.output[0])
    if shape is None or len(shape) != 2 or not body.read_once(gradient):
        return None
    if body.shape(kept) != shape or body.shape(gradient) != shape:
        return None
    beta, product = 1.0, body.producer(kept, "Mul")
    if product is not None and body.read_once(kept):
        factor = body.value(product.input[1])
        # Attributes are float32: another factor would be rounded.
        if factor is not None and factor.size == 1 and float(np.float32(factor.item())) == factor.item():
            beta, kept = factor.item(), product.input[0]
    operands = _product_of(body, gradient)
    if operands is None:
        return None
    inputs, attributes = operands
    alpha = -float(attributes.pop("alpha", 1.0))
    return body.make(
        "Gemm",
        *inputs,
        kept,
        like=node.output[0],
        output=node.output[0],
        alpha=alpha,
        beta=beta,
        **attributes,
    )[0]


def _product_of(body: Body, gradient: str) -> tuple[list[str], dict] | None:
    """Return a gradient as the operands and attributes of a Gemm without a third operand."""
    gemm = body.producer(gradient, "Gemm")
    if gemm is not None:
        attributes = _gemm_attributes(gemm)
        attributes.pop("beta", None)
        return (list(gemm.input), attributes) if len(gemm.input) == 2 else None
    total = body.producer(gradient, "ReduceSum")
    if total is None or len(total.input) != 2 or not body.is_float(gradient):
        return None
    axes, shape = body.value(total.input[1]), body.shape(total.input[0])
    known = body.type(gradient)
    if axes is None or axes.tolist() != [0] or shape is None or len(shape) != 2 or known is None:
        return None
    ones = np.ones((shape[0], 1), dtype=helper.tensor_dtype_to_np_dtype(known.elem_type))
    return [body.constant(ones), total.input[0]], {"transA": 1}
