"""Forms that converters write, as others with the same result and a right gradient.

One file per form; each has a pure function from model to model.
"""

from __future__ import annotations

from onnx import ModelProto

from .roots import guard_roots
from .row_reshapes import rewrite_row_reshapes
from .scan_distances import rewrite_scan_distances
from .single_tables import single_precision_tables
from .solve import rewrite_solves
from .vector_products import rewrite_vector_products

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
    """Return the model with distances, roots and products in forms that have a right gradient.

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
