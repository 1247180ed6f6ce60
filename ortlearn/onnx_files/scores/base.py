"""What a graph of unknown origin is for, and the scores that are trained of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from ...exceptions import ConversionError
from ...graphs import TensorType
from ...models import Scores
from .graph_end import GraphEnd

__all__ = ["Purpose", "make_scores"]


@dataclass(frozen=True)
class Purpose:
    """What a graph is for.

    Attributes
    ----------
    task : {"regression", "classification", "multilabel"}
        What the loss must be for.
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
    """Return the outputs of a model once its score is known to be a matrix.

    Parameters
    ----------
    end : GraphEnd
        Graph.
    task, score, link : str
        What is trained.
    **outputs
        Other attributes of the scores.

    Returns
    -------
    Scores
        Scores.

    Raises
    ------
    ConversionError
        If the number of scores is not known.
    """
    known: TensorType | None = end.op.type(score)
    shape = None if known is None else known.shape
    if known is None or shape is None or len(shape) != 2 or not isinstance(shape[1], int):
        raise ConversionError(
            f"Tensor {score!r} must have a shape (rows, k) with a known k to be trained, not {shape}."
        )
    dtype = np.dtype(np.float64 if known.elem_type == TensorProto.DOUBLE else np.float32)
    return Scores(task, score, shape[1], link, dtype=dtype, **outputs)
