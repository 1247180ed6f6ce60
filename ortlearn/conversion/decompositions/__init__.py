"""Fused operators written as plain ones, their attributes as named weights.

One file per operator; each has ``decompose(fused) -> bool``, which writes the replacement and says
whether it could. A node that cannot be decomposed stays as it is.
"""

from __future__ import annotations

import numpy as np
from onnx import ModelProto

from ...graphs import GraphBuilder, copy_model, graph_names, opset_versions, value_types
from . import linear_classifier, linear_regressor, scaler
from .common import Fused

__all__ = ["DECOMPOSITIONS", "decompose_operators"]

#: Decompositions by domain and operator.
DECOMPOSITIONS = {
    ("ai.onnx.ml", "LinearClassifier"): linear_classifier.decompose,
    ("ai.onnx.ml", "LinearRegressor"): linear_regressor.decompose,
    ("ai.onnx.ml", "Scaler"): scaler.decompose,
}


def decompose_operators(model: ModelProto) -> ModelProto:
    """Return a model whose fused linear operators and scalers are plain operators with weights.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model with the same outputs.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion import decompose_operators
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
    ...     g (float[N,2] x) => (float[N,1] y) {
    ...         y = ai.onnx.ml.LinearRegressor<coefficients = [1.0, 2.0], intercepts = [3.0]> (x)
    ...     }''')
    >>> [node.op_type for node in decompose_operators(model).graph.node]
    ['MatMul', 'Add']
    """
    if not any((node.domain, node.op_type) in DECOMPOSITIONS for node in model.graph.node):
        return model
    op = GraphBuilder(
        opset_versions(model).get("", 18),
        dtype=np.float32,
        existing_names=graph_names(model.graph),
        types=value_types(model),
    )
    for node in model.graph.node:
        decompose = DECOMPOSITIONS.get((node.domain, node.op_type))
        if decompose is None or not decompose(Fused(node, op)):
            op.nodes.append(node)
    result = copy_model(model)
    del result.graph.node[:]
    result.graph.node.extend(op.nodes)
    result.graph.initializer.extend(op.initializers)
    if "" not in opset_versions(model):
        result.opset_import.add(domain="", version=op.opset)
    return result
