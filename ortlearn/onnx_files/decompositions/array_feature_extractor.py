"""ai.onnx.ml.ArrayFeatureExtractor -> Gather on the last axis."""

from __future__ import annotations

from .common import Fused

__all__ = ["decompose"]


def decompose(fused: Fused) -> bool:
    """Write a choice of columns; the numbers of the columns count as one list, whatever their shape.

    A vector gives a tensor of one row.
    """
    x, columns = fused.node.input
    op = fused.op
    shape, places = op.shape(x), op.shape(columns)
    if shape is None:
        return False
    if places is None or len(places) != 1:
        columns = op.Reshape(columns, [-1])
    if len(shape) == 1:
        fused.write("Unsqueeze", op.Gather(x, columns, axis=0), [0], outputs=[fused.node.output[0]])
    else:
        fused.write("Gather", x, columns, outputs=[fused.node.output[0]], axis=-1)
    return True
