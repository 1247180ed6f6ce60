"""Products of a matrix by a vector -> products by a matrix of one column.

onnxruntime fuses Transpose and MatMul by a vector into one operator that does not compute their
product, and its gradient builder differentiates MatMul as if both operands were matrices.
"""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from ...graphs import GraphBuilder, replace_nodes

__all__ = ["rewrite_vector_products"]


def rewrite_vector_products(model: ModelProto) -> ModelProto:
    """Return the model with a column in place of each vector on the right of a product.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model with the same outputs and the same initializers.
    """

    def matmul(node: NodeProto, op: GraphBuilder) -> bool:
        left, right = node.input
        if len(op.shape(right) or ()) != 1:
            return False
        product = op.MatMul(left, op.Unsqueeze(right, [1]))
        op.Squeeze(product, [-1], outputs=[node.output[0]])
        return True

    return replace_nodes(model, {("", "MatMul"): matmul})
