"""Arithmetic with fewer nodes."""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import NodeProto

from ...graphs.nodes import attribute
from ...graphs.view import GraphView

__all__ = [
    "drop_identities",
    "factor_out_scalars",
    "merge_reductions",
    "replace_sign_of_relu",
    "simplify_products",
    "sum_of_squares",
]

#: Powers of two by type; their products with positive normal numbers are at least one.
LARGE_FACTOR = {np.dtype(np.float32): 2.0**127, np.dtype(np.float64): 2.0**1023}


def simplify_products(graph: GraphView) -> None:
    """Remove products with one, write ``x * s + x * s`` as ``x * 2s``, and ``y - x * -1`` as ``y + x``."""
    graph.rewrite(partial(_simplify_node, graph))


def _simplify_node(graph: GraphView, node: NodeProto) -> bool | str:
    if node.domain != "" or node.op_type not in ("Mul", "Add", "Sub"):
        return False
    if node.op_type == "Add":
        return node.input[0] == node.input[1] and _double_product(graph, node)
    if node.op_type == "Sub":
        return _subtract_negated(graph, node)
    for one, other in (node.input, reversed(node.input)):
        if graph.is_constant(one, 1.0) and not graph.keeps_name(node.output[0]):
            return other if graph.sizes(other) == graph.sizes(node.output[0]) is not None else False
    return False


def _double_product(graph: GraphView, node: NodeProto) -> bool:
    op, product = graph.op, graph.producer(node.input[0], "Mul")
    if product is None:
        return False
    for name, other in (product.input, reversed(product.input)):
        if op.shape(name) == ():
            value, two = graph.value(name), np.asarray(2, dtype=op.dtype(name))
            doubled = graph.copy_type(op.Mul(name, two), name) if value is None else value + value
            op.Mul(other, doubled, outputs=node.output)
            return True
    return False


def _subtract_negated(graph: GraphView, node: NodeProto) -> bool:
    product = graph.producer(node.input[1], "Mul")
    if product is None:
        return False
    for one, other in (product.input, reversed(product.input)):
        if graph.is_constant(one, -1.0) and graph.sizes(other) == graph.sizes(node.input[1]) is not None:
            graph.op.Add(node.input[0], other, outputs=node.output)
            return True
    return False


def factor_out_scalars(graph: GraphView) -> None:
    """Write ``a * s + b * s`` as ``(a + b) * s`` for a scalar s, and differences likewise."""
    graph.rewrite(partial(_factor_node, graph))


def _factor_node(graph: GraphView, node: NodeProto) -> bool:
    if node.domain != "" or node.op_type not in ("Add", "Sub", "Sum") or len(node.input) != 2:
        return False
    first, second = (_as_scaled(graph, name) for name in node.input)
    if first is None or second is None or not all(map(graph.read_once, node.input)):
        return False
    (left, factor, first_negated), (right, other, negated) = first, second
    # Only if no term is broadcast: otherwise the product of the sum would be the larger one.
    if factor != other or graph.sizes(left) != graph.sizes(right):
        return False
    op, second_negated = graph.op, negated != (node.op_type == "Sub")
    if first_negated == second_negated:
        combined, factor = op.Add(left, right), op.Neg(factor) if first_negated else factor
    else:
        combined = op.Sub(right, left) if first_negated else op.Sub(left, right)
    op.Mul(graph.copy_type(combined, left), factor, outputs=node.output)
    return True


def _as_scaled(graph: GraphView, name: str) -> tuple[str, str, bool] | None:
    """Return the tensor and the scalar of their product, and whether the scalar is negated, or None."""
    product = graph.producer(name, "Mul")
    if product is None:
        return None
    for factor, other in (product.input, reversed(product.input)):
        if graph.op.shape(factor) == () and graph.sizes(other) == graph.sizes(name):
            negated = graph.producer(factor, "Neg")
            return (other, factor, False) if negated is None else (other, negated.input[0], True)
    return None


def merge_reductions(graph: GraphView) -> None:
    """Write the mean of sums over outputs, ``mean(c * sum(x, axis=1))``, as one sum and one product."""
    graph.rewrite(partial(_merge_node, graph))


def _merge_node(graph: GraphView, mean: NodeProto) -> bool:
    if mean.op_type != "ReduceMean" or len(mean.input) > 1 or _axes(mean):
        return False
    op, sizes, factor, name = graph.op, graph.sizes(mean.input[0]), 1.0, mean.input[0]
    product = graph.producer(name, "Mul")
    if product is not None and graph.read_once(name):
        value = graph.value(product.input[1])
        if value is not None and value.size == 1:
            factor, name = float(value.item()), product.input[0]
    total = graph.producer(name, "ReduceSum")
    if sizes is None or total is None or not graph.read_once(name) or len(sizes) != 1:
        return False
    if op.shape(mean.output[0]) != ():
        return False
    scale = np.asarray(factor / sizes[0], dtype=op.dtype(mean.output[0]))
    whole = graph.copy_type(op.ReduceSum(total.input[0], keepdims=0), mean.output[0])
    op.Mul(whole, scale, outputs=mean.output)
    return True


def _axes(node: NodeProto) -> bool:
    return attribute(node, "axes") is not None or attribute(node, "noop_with_empty_axes", 0) != 0


def sum_of_squares(graph: GraphView) -> None:
    """Write ``sum(x * x)`` over all axes as ReduceSumSquare."""
    graph.rewrite(partial(_write_sum_of_squares, graph))


def _write_sum_of_squares(graph: GraphView, node: NodeProto) -> bool:
    if node.op_type != "ReduceSum" or len(node.input) != 1 or _axes(node):
        return False
    square = graph.producer(node.input[0], "Mul")
    if square is None or square.input[0] != square.input[1] or not graph.read_once(node.input[0]):
        return False
    if not graph.is_float(square.input[0]):
        return False
    keepdims = attribute(node, "keepdims", 1)
    graph.op.ReduceSumSquare(square.input[0], keepdims=keepdims, outputs=node.output)
    return True


def replace_sign_of_relu(graph: GraphView) -> None:
    """Write ``sign(relu(x))`` as ``min(relu(x) * c, 1)`` with a large c, which is vectorized.

    It is one for positive normal numbers, and less for subnormal ones (below 1.2e-38 in float32).
    """
    graph.rewrite(partial(_replace_sign, graph))


def _replace_sign(graph: GraphView, node: NodeProto) -> bool:
    if node.op_type != "Sign" or graph.producer(node.input[0], "Relu") is None:
        return False
    op, name = graph.op, node.input[0]
    known = op.type(name)
    steep = None if known is None else LARGE_FACTOR.get(op.dtype(name))
    if steep is None:
        return False
    if op.dtype(name) == np.float32:  # onnxruntime has no HardSigmoid in float64
        # The OpenVINO provider replaces beta=0 by the default, 0.5.
        op.HardSigmoid(name, alpha=steep, beta=-1e-30, outputs=node.output)
    else:
        product = graph.copy_type(op.Mul(name, np.asarray(steep)), name)
        op.Clip(product, np.asarray(0.0), np.asarray(1.0), outputs=node.output)
    return True


def drop_identities(graph: GraphView) -> None:
    """Remove Identity nodes that only rename a result to an output."""
    renamed: dict[str, str] = {}
    for node in graph.nodes:
        if node.op_type == "Identity" and node.output[0] in graph.outputs:
            source = node.input[0]
            if source in graph.producers and not graph.keeps_name(source):
                renamed.setdefault(source, node.output[0])
    graph.rename(renamed)
