"""What is trained of a model, and what comes after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from ...exceptions import ConversionError
from ...graphs import TensorType
from .graph_end import GraphEnd

__all__ = ["NO_DECISION", "Head", "make_head"]

#: The decision of a head whose graph holds none.
NO_DECISION = ""


@dataclass(frozen=True)
class Head:
    """What is trained, and what comes after it.

    Attributes
    ----------
    task : {"regression", "classification", "multilabel", "unsupervised"}
        What the loss must be for. ``"multilabel"`` has several classes per row at once;
        ``"unsupervised"`` has a loss of its own for each row, and no labels.
    score : str
        Tensor that the loss compares with the labels, of shape (n, k).
    link : {"identity", "log", "sigmoid", "softmax"}
        What turns scores into predictions or probabilities.
    n_outputs : int
        k.
    dtype : numpy.dtype
        Type of the scores.
    label : str or None
        Output with the classes of a classifier, the clusters or components of others.
    probabilities : str, tuple of str or None
        Probabilities of a classifier or a mixture; one matrix per output where each output has
        classes of its own.
    classes : ndarray, list of ndarray or None
        Classes, where the model or its graph tells.
    prediction : str or None
        Tensor that ``predict`` returns; None for the label, or the score of a regression.
    transformed : str or None
        Tensor that ``transform`` returns.
    decision : str or None
        Tensor that ``decision_function`` returns; None for the score, empty where there is none.
    likelihood : str or None
        Log-likelihoods of the rows of a mixture, of shape (n, 1).
    groups : tuple of int
        Numbers of scores of each output of a multi-label model; empty for others.
    """

    task: str
    score: str
    link: str
    n_outputs: int
    dtype: np.dtype
    label: str | None = None
    probabilities: str | tuple[str, ...] | None = None
    classes: Any = None
    prediction: str | None = None
    transformed: str | None = None
    decision: str | None = None
    likelihood: str | None = None
    groups: tuple[int, ...] = ()

    @property
    def has_decisions(self) -> bool:
        """Whether the graph has what ``decision_function`` returns."""
        return self.decision != NO_DECISION


def make_head(end: GraphEnd, task: str, score: str, link: str, **outputs: Any) -> Head:
    """Return a head once its score is known to be a matrix.

    Parameters
    ----------
    end : GraphEnd
        Graph.
    task, score, link : str
        What the head is.
    **outputs
        Its other attributes.

    Returns
    -------
    Head
        Head.

    Raises
    ------
    ConversionError
        If the number of scores is not known.
    """
    known: TensorType | None = end.type(score)
    shape = None if known is None else known.shape
    if known is None or shape is None or len(shape) != 2 or not isinstance(shape[1], int):
        raise ConversionError(
            f"Tensor {score!r} must have a shape (rows, k) with a known k to be trained, not {shape}."
        )
    dtype = np.dtype(np.float64 if known.elem_type == TensorProto.DOUBLE else np.float32)
    return Head(task, score, link, shape[1], dtype, **outputs)
