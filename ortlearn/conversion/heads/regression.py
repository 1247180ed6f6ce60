"""Regressors and transformers: what they give is compared with the targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..preparation.kinds import ModelKind
from ..preparation.target_transforms import write_inverse
from ..weights.weight_selection import Weight
from .base import Head, make_head
from .graph_end import GraphEnd
from .outputs import split_outputs

__all__ = ["regression_head", "transformation_head"]


def regression_head(end: GraphEnd, kind: ModelKind, weights: Mapping[str, Weight]) -> Head:
    """Return the head of a regressor.

    A regressor of transformed targets is trained on these, as scikit-learn does, and predicts the
    targets themselves. With a log link the scores are what an Exp at the end of the graph takes, and
    where there is none, one is appended: the model then predicts ``exp(score)``.
    """
    output = split_outputs(end)[0][0]
    own = _logarithm(end, output) if kind.link == "log" else None
    if not kind.target_transformers and (own is not None or kind.link == "identity"):
        score = _as_matrix(end, kind, output if own is None else own)
        prediction = None if own is None else output
        return make_head(end, "regression", score, kind.link, prediction=prediction)
    score = end.replace_output(output, columns=end.width(output) or 1)
    given = score
    if own is not None:
        score = own
    elif kind.link == "log":
        given = end.op.Exp(score)
    end.op.node("Identity", _inverted(end, kind, given), outputs=[output])
    return make_head(end, "regression", _as_matrix(end, kind, score), kind.link, prediction=output)


def _logarithm(end: GraphEnd, output: str) -> str | None:
    """Return what a prediction is the exponential of, where the graph ends so."""
    node = end.producer(output)
    while node is not None and node.op_type in ("Identity", "Reshape"):
        node = end.producer(node.input[0])
    return node.input[0] if node is not None and node.op_type == "Exp" else None


def _inverted(end: GraphEnd, kind: ModelKind, name: str) -> str:
    for transformer in reversed(kind.target_transformers):
        name = write_inverse(end.op, transformer, name)
    return name


def _as_matrix(end: GraphEnd, kind: ModelKind, name: str) -> str:
    """Return a prediction as a matrix with a known number of columns."""
    name = end.origin(name)
    shape = end.op.shape(name)
    if shape is not None and len(shape) == 2 and isinstance(shape[1], int):
        return name
    if shape is not None and len(shape) == 1:
        return end.as_matrix(name, 1)
    if kind.core is None:
        return name
    # Shape inference does not see through every graph; the estimator knows.
    columns = _columns_of(kind.core)
    if columns is None:
        return name
    end.note_columns(end.outputs[0], columns)
    return end.as_matrix(name, columns)


def _columns_of(core: Any) -> int | None:
    """Return the number of columns that an estimator gives, where it can tell."""
    if hasattr(core, "get_feature_names_out"):
        return len(core.get_feature_names_out())
    if not hasattr(core, "predict"):
        return None
    return int(np.size(core.predict(np.zeros((1, core.n_features_in_)))))


def transformation_head(end: GraphEnd, kind: ModelKind, weights: Mapping[str, Weight]) -> Head:
    """Return the head of a transformer, trained on targets of the shape of its output."""
    output = split_outputs(end)[0][0]
    return make_head(end, "regression", _as_matrix(end, kind, output), "identity", transformed=output)
