"""The output with the classes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .graph_end import GraphEnd

__all__ = ["class_table", "write_signs"]


def class_table(end: GraphEnd, label: str) -> np.ndarray | None:
    """Return the one-dimensional table of numbers or texts that the label is taken from."""
    needed = {label}
    for node in reversed(end.model.graph.node):
        if not needed.intersection(node.output) or node.op_type in ("ArgMax", "ArgMin"):
            continue  # before the choice of a class are the labels of members
        if node.op_type in ("ArrayFeatureExtractor", "Gather"):
            table = end.constant(end.before(node.input[0], ("Cast", "Reshape", "Unsqueeze")))
            if table is not None and table.dtype.kind != "f":
                classes = np.ravel(table)
                texts = [c.decode() if isinstance(c, bytes) else c for c in classes]
                return np.asarray(texts) if classes.dtype.kind == "O" else classes
        needed.update(node.input)
    return None


def write_signs(end: GraphEnd, label: str, scores: str) -> None:
    """Make the labels one where a score, of several, is above zero, and zero elsewhere."""
    end.replace_output(label, TensorProto.INT64, end.width(scores))
    above = end.op.Greater(scores, end.scalar(0.0, scores))
    end.op.node("Cast", above, outputs=[label], to=TensorProto.INT64)
