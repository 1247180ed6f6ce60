"""Products and additions as one Gemm: layers, and gradients with their update."""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import NodeProto

from ...graphs.nodes import attributes_of
from ...graphs.view import GraphView

__all__ = ["fuse_matmul_add", "fuse_matmul_sub", "fuse_updates"]

#: Elements of a matrix above which onnxruntime's product with a column is slow unless alpha and beta are 1,
#: since only then it uses a matrix-vector product.
MAX_COLUMN_ELEMENTS = 2_000


def fuse_matmul_add(graph: GraphView) -> None:
    """Write ``MatMul(x, w) + b`` of matrices as ``Gemm(x, w, b)``."""
    graph.rewrite(partial(_fuse_add, graph))


def _fuse_add(graph: GraphView, node: NodeProto) -> bool:
    if node.op_type != "Add" or node.domain != "":
        return False
    for name, bias in (node.input, reversed(node.input)):
        product = graph.producer(name, "MatMul")
        if product is None or not graph.read_once(name):
            continue
        sizes = [graph.sizes(n) for n in (*product.input, bias)]
        if None in sizes or [len(s or ()) for s in sizes[:2]] != [2, 2]:
            continue
        # Gemm broadcasts its third operand to the product, but not the product.
        if graph.sizes(name) == graph.sizes(node.output[0]) and graph.is_float(name):
            graph.op.Gemm(*product.input, bias, outputs=node.output)
            return True
    return False


def fuse_matmul_sub(graph: GraphView) -> None:
    """Write ``MatMul(x, w) - y`` as ``Gemm(x, w, -y)``; one Neg suffices for the labels of many batches."""
    labels = {value.name for value in graph.graph.input}
    graph.rewrite(partial(_fuse_sub, graph, labels))


def _fuse_sub(graph: GraphView, labels: set[str], node: NodeProto) -> bool:
    if node.op_type != "Sub" or node.domain != "" or node.input[1] not in labels:
        return False
    name, label = node.input
    product, sizes = graph.producer(name, "MatMul"), graph.sizes(node.output[0])
    if product is None or not graph.read_once(name) or not graph.is_float(name):
        return False
    ranks = [len(graph.sizes(operand) or ()) for operand in product.input]
    if ranks != [2, 2] or sizes is None or {graph.sizes(name), graph.sizes(label)} != {sizes}:
        return False
    graph.op.Gemm(*product.input, graph.copy_type(graph.op.Neg(label), label), outputs=node.output)
    return True


def fuse_updates(graph: GraphView) -> None:
    """Write ``w + gradient`` and ``momentum * v + gradient`` as one Gemm with the product in the gradient.

    If gradients include the negative learning rate, ``v = momentum * v + h^T g`` is ``Gemm(h, g, v, transA=1,
    beta=momentum)``. A sum over a batch of known size is a product with ones. Differences have ``alpha=-1``.
    """
    graph.rewrite(partial(_fuse_update, graph))


def _fuse_update(graph: GraphView, node: NodeProto) -> bool:
    if node.op_type == "Sub" and node.domain == "":
        return _write_update(graph, node, node.input[0], node.input[1], sign=-1.0)
    if node.op_type == "Add" and node.domain == "":
        kept, gradient = node.input
        return _write_update(graph, node, kept, gradient) or _write_update(graph, node, gradient, kept)
    return False


def _write_update(graph: GraphView, node: NodeProto, kept: str, gradient: str, sign: float = 1.0) -> bool:
    sizes = graph.sizes(node.output[0])
    if sizes is None or len(sizes) != 2 or not graph.read_once(gradient):
        return False
    if graph.sizes(kept) != sizes or graph.sizes(gradient) != sizes:
        return False
    operands = _as_gemm(graph, gradient)
    if operands is None:
        return False
    inputs, attributes = operands
    alpha, beta = sign * float(attributes.get("alpha", 1.0)), 1.0
    rows = graph.sizes(inputs[1])
    is_vector = sizes[1] == 1 and rows is not None and max(rows) * sizes[0] > MAX_COLUMN_ELEMENTS
    if is_vector and alpha != 1.0:
        return False
    product = graph.producer(kept, "Mul")
    if product is not None and graph.read_once(kept) and not is_vector:
        factor = graph.value(product.input[1])
        # Attributes are float32: other factors would be rounded.
        if factor is not None and factor.size == 1 and float(np.float32(factor.item())) == factor.item():
            beta, kept = factor.item(), product.input[0]
    graph.op.Gemm(*inputs, kept, outputs=node.output, **{**attributes, "alpha": alpha, "beta": beta})
    return True


def _as_gemm(graph: GraphView, gradient: str) -> tuple[list, dict] | None:
    """Return the operands and attributes of a gradient as a Gemm without a third operand, or None."""
    gemm = graph.producer(gradient, "Gemm")
    if gemm is not None:
        return (list(gemm.input), attributes_of(gemm)) if len(gemm.input) == 2 else None
    total = graph.producer(gradient, "ReduceSum")
    if total is None or len(total.input) != 2 or not graph.is_float(gradient):
        return None
    axes, sizes = graph.value(total.input[1]), graph.sizes(total.input[0])
    if axes is None or axes.tolist() != [0] or sizes is None or len(sizes) != 2:
        return None
    ones = np.ones((sizes[0], 1), dtype=graph.op.dtype(gradient))
    return [ones, total.input[0]], {"transA": 1}
