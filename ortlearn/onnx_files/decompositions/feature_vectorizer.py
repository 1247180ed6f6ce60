"""ai.onnx.ml.FeatureVectorizer -> Concat."""

from __future__ import annotations

from .common import Fused

__all__ = ["decompose"]


def decompose(fused: Fused) -> bool:
    """Write columns put side by side; False unless each tensor has as many as are declared for it."""
    op = fused.op
    sizes = list(fused.attribute("inputdimensions", []))
    shapes = [op.shape(name) for name in fused.node.input]
    if [shape[1] if shape is not None and len(shape) == 2 else None for shape in shapes] != sizes:
        return False
    floats = [fused.float_input(index) for index in range(len(sizes))]
    fused.write("Concat", *floats, outputs=[fused.node.output[0]], axis=1)
    rows = (shapes[0] or (None,))[0]
    fused.note_output((rows, sum(sizes)))
    return True
