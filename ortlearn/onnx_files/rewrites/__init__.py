"""Forms that converters write, as others with the same result and a right gradient.

Each is a pure function from model to model.
"""

from __future__ import annotations

from onnx import ModelProto

from .products import rewrite_solves, rewrite_vector_products
from .roots import guard_roots
from .row_reshapes import rewrite_row_reshapes
from .scan_distances import rewrite_scan_distances
from .single_tables import single_precision_tables

__all__ = ["REWRITES", "rewrite_forms"]

#: What every model goes through, in this order.
REWRITES = (
    rewrite_scan_distances,
    guard_roots,
    rewrite_vector_products,
    rewrite_row_reshapes,
    rewrite_solves,
    single_precision_tables,
)


def rewrite_forms(model: ModelProto) -> ModelProto:
    """Return a model with the same outputs whose distances, roots and products have a right gradient.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.onnx_files.rewrites import rewrite_forms
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N] y) <float[2] w = {1, 2}> { y = MatMul (x, w) }''')
    >>> [node.op_type for node in rewrite_forms(model).graph.node]
    ['Unsqueeze', 'MatMul', 'Squeeze']
    """
    for rewrite in REWRITES:
        model = rewrite(model)
    return model
