"""The output with the classes, written anew where the graph's own is not what scikit-learn predicts."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..preparation.unwrapping import Threshold
from .graph_end import GraphEnd

__all__ = ["are_integers", "class_table", "write_best_class", "write_by_threshold", "write_signs"]


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


def are_integers(classes: np.ndarray) -> bool:
    """Tell whether numbers can be written as integers, as graphs have them."""
    return classes.dtype.kind != "f" or bool(np.all(classes == np.floor(classes)))


def write_best_class(end: GraphEnd, label: str, score: str, classes: np.ndarray) -> None:
    """Make the label the class of the highest score; of a single score, the second class above zero."""
    if end.width(score) == 1:
        number = _as_number(end, end.op.Greater(score, end.scalar(0.0, score)))
    else:
        number = end.op.ArgMax(score, axis=1, keepdims=0)
    _write(end, label, number, classes)


def write_by_threshold(
    end: GraphEnd, label: str, score: str, threshold: Threshold, classes: np.ndarray
) -> None:
    """Make the label the positive class where its score, of shape (n, 1), reaches a threshold."""
    above = _as_number(end, end.op.GreaterOrEqual(score, end.scalar(threshold.value, score)))
    ordered = classes if threshold.positive == 1 else classes[::-1]
    _write(end, label, above, ordered)


def write_signs(end: GraphEnd, label: str, scores: str) -> None:
    """Make the labels one where a score, of several, is above zero, and zero elsewhere."""
    end.replace_output(label, TensorProto.INT64, end.width(scores))
    above = end.op.Greater(scores, end.scalar(0.0, scores))
    end.op.node("Cast", above, outputs=[label], to=TensorProto.INT64)


def _as_number(end: GraphEnd, condition: str) -> str:
    return end.op.Reshape(end.op.Cast(condition, to=TensorProto.INT64), [-1])


def _write(end: GraphEnd, label: str, number: str, classes: np.ndarray) -> None:
    table = classes.astype(object) if classes.dtype.kind in "OUS" else classes.astype(np.int64)
    kind = TensorProto.STRING if table.dtype.kind == "O" else TensorProto.INT64
    end.replace_output(label, kind)
    end.op.node("Gather", end.op.constant(table), number, outputs=[label], axis=0)
