"""Products of matrices in forms that onnxruntime runs and differentiates."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto

from ...graphs import GraphBuilder, replace_nodes
from ...graphs.nodes import attributes_of
from ...graphs.view import GraphView

__all__ = ["rewrite_solves", "rewrite_vector_products"]


def rewrite_vector_products(model: ModelProto) -> ModelProto:
    """Return the model with a column in place of each vector on the right of a product.

    onnxruntime fuses Transpose and MatMul by a vector into one operator that does not compute their product,
    and its gradient builder differentiates MatMul as if both operands were matrices.
    """

    def matmul(node: NodeProto, op: GraphBuilder) -> bool:
        left, right = node.input
        if len(op.shape(right) or ()) != 1:
            return False
        product = op.MatMul(left, op.Unsqueeze(right, [1]))
        op.Squeeze(product, [-1], outputs=[node.output[0]])
        return True

    return replace_nodes(model, {("", "MatMul"): matmul})


def rewrite_solves(model: ModelProto) -> ModelProto:
    """Return the model with a product for the solution of linear equations whose matrix is constant.

    skl2onnx writes com.microsoft.Solve for Gaussian process classifiers, with the Cholesky factor of their
    kernel; onnxruntime does not have it. Equations with a computed matrix stay.
    """
    graph = GraphView(model)

    def solve(node: NodeProto, op: GraphBuilder) -> bool:
        matrix = graph.value(node.input[0])
        if matrix is None or matrix.ndim != 2:
            return False
        flags = attributes_of(node)
        full = np.tril(matrix) if flags.get("lower") else matrix
        full = full.T if flags.get("transposed") else full
        inverse = np.linalg.inv(full.astype(np.float64)).astype(matrix.dtype)
        op.MatMul(op.constant(inverse), node.input[1], outputs=[node.output[0]])
        return True

    return replace_nodes(model, {("com.microsoft", "Solve"): solve})
