"""ai.onnx.ml.Imputer -> Where."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .common import Fused

__all__ = ["decompose"]


def decompose(fused: Fused) -> bool:
    """Write an imputer as a choice between its input and one imputed value for each column."""
    x, op = fused.node.input[0], fused.op
    known = op.type(x)
    if known is None or known.elem_type not in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64):
        return False
    integers = known.elem_type == TensorProto.INT64
    values = fused.attribute("imputed_value_int64s" if integers else "imputed_value_floats", [])
    if not len(values):
        return False
    missing = fused.attribute("replaced_value_int64" if integers else "replaced_value_float", 0)
    dtype = op.dtype(x)
    imputed = fused.weight("imputed_value", np.asarray(values, dtype=dtype))
    chosen = op.IsNaN(x) if np.isnan(missing) else op.Equal(x, op.constant(missing, dtype))
    fused.write("Where", chosen, imputed, x, outputs=[fused.node.output[0]])
    fused.note_output(known.shape, known.elem_type)
    return True
