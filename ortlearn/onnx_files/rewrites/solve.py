"""com.microsoft.Solve, which skl2onnx writes and onnxruntime does not have -> a product by the inverse."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto

from ...graphs import GraphBuilder, replace_nodes
from ...graphs.nodes import attributes_of
from ...graphs.view import GraphView

__all__ = ["rewrite_solves"]


def rewrite_solves(model: ModelProto) -> ModelProto:
    """Return the model with a product for the solution of linear equations whose matrix is constant.

    Gaussian process classifiers solve such equations with the Cholesky factor of their kernel.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model that onnxruntime runs; equations with a matrix that is computed stay.
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
