"""Outputs of a graph of unknown origin: which are scores, which are classes, and which of which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from ...exceptions import ConversionError
from ...models import Scores
from .graph_end import FLOATS, GraphEnd
from .several_outputs import computed_outputs

__all__ = ["Purpose", "class_table", "make_scores", "split_outputs", "write_signs"]


@dataclass(frozen=True)
class Purpose:
    """Task of a graph.

    Attributes
    ----------
    task : {"regression", "classification", "multilabel"}
        Task that the loss must be for.
    link : {"identity", "log"}
        What the scores of a regressor are to be of its predictions.
    n_labels : int
        Number of columns of classes of a multi-label classifier.
    has_probabilities : bool
        Whether these have probabilities.
    """

    task: str
    link: str = "identity"
    n_labels: int = 0
    has_probabilities: bool = False


def make_scores(end: GraphEnd, task: str, score: str, link: str, **outputs: Any) -> Scores:
    """Return the scores of a model, of shape (n, k) with a known k; raise a ConversionError otherwise."""
    known = end.op.type(score)
    shape = None if known is None else known.shape
    if known is None or shape is None or len(shape) != 2 or not isinstance(shape[1], int):
        raise ConversionError(
            f"Tensor {score!r} must have a shape (n, k) with a known k to be trained, not {shape}."
        )
    dtype = np.dtype(np.float64 if known.elem_type == TensorProto.DOUBLE else np.float32)
    return Scores(task, score, shape[1], link, dtype=dtype, **outputs)


def split_outputs(end: GraphEnd) -> tuple[list[str], list[str]]:
    """Return the floating-point outputs and the others; a ConversionError if none is floating-point.

    Constants and inputs that a graph passes on are left out.
    """
    types = {name: end.op.type(name) for name in computed_outputs(end.graph)}
    floats = [name for name, known in types.items() if known is not None and known.elem_type in FLOATS]
    if not floats:
        raise ConversionError(f"None of the outputs {end.outputs} is a floating-point tensor to train on.")
    return floats, [name for name in types if name not in floats]


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
