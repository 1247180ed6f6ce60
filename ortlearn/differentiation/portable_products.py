"""Matrix products in forms that all versions of onnxruntime compute correctly."""

from __future__ import annotations

import string

from onnx import ModelProto, NodeProto, TensorProto

from ..graphs import GraphBuilder, replace_nodes
from ..graphs.nodes import attribute, attributes_of
from ..graphs.view import GraphView

__all__ = ["portable_products"]


def portable_products(model: ModelProto) -> ModelProto:
    """Return a model whose products are correct with every optimization level, and for empty batches.

    onnxruntime 1.19 rejects a Gemm that sums over an empty axis. With its default optimizations, onnxruntime
    fuses Transpose and MatMul: products with a vector are wrong, and version 1.19 has no kernel for the fused
    product in float64.
    """
    model = replace_nodes(model, {("", "Gemm"): _sum_over_any_batch})
    view, fused = GraphView(model), set[str]()
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.domain in ("", "ai.onnx"):
            types = [known for known in map(view.op.type, node.input) if known is not None]
            is_double = any(known.elem_type == TensorProto.DOUBLE for known in types)
            if is_double or any(known.shape is not None and len(known.shape) == 1 for known in types):
                fused.update(node.input)

    def rule(node: NodeProto, op: GraphBuilder) -> bool:
        return node.output[0] in fused and _as_einsum(node, op)

    return replace_nodes(model, {("", "Transpose"): rule})


def _sum_over_any_batch(node: NodeProto, op: GraphBuilder) -> bool:
    """Replace a Gemm of two matrices that sums over an axis of unknown length by a product, or zeros."""
    names, flags = list(node.input), attributes_of(node)
    shape, axis = op.shape(names[0]), 0 if flags.get("transA") else 1
    length = 1 if shape is None else shape[axis]
    if len(names) > 2 or (isinstance(length, int) and length > 0):
        return False
    parts = [
        op.Transpose(name, perm=[1, 0]) if flags.get(flag) else name
        for name, flag in zip(names, ("transA", "transB"), strict=True)
    ]
    product, dtype = op.MatMul(*parts), op.dtype(names[0])
    if flags.get("alpha", 1.0) != 1.0:
        product = op.Mul(product, op.constant(flags["alpha"], dtype))
    is_empty = op.Equal(op.Gather(op.Shape(names[0]), [axis], axis=0), [0])
    op.Where(is_empty, op.constant(0.0, dtype), product, outputs=node.output)  # else it may be undefined
    return True


def _as_einsum(node: NodeProto, op: GraphBuilder) -> bool:
    """Replace a Transpose by an Einsum, unless its rank is unknown."""
    perm, shape = attribute(node, "perm"), op.shape(node.input[0])
    if perm is None and shape is None:
        return False
    axes = perm or list(reversed(range(len(shape or ()))))
    letters = string.ascii_lowercase[: len(axes)]
    moved = "".join(letters[axis] for axis in axes)
    op.Einsum(node.input[0], equation=f"{letters}->{moved}", outputs=[node.output[0]])
    return True
