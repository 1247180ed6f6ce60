"""Regressors and transformers: what they give is compared with the targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..kinds import ModelKind
from ..target_transforms import write_inverse
from ..weight_selection import Weight
from .base import Head, make_head
from .graph_end import GraphEnd
from .outputs import split_outputs

__all__ = ["regression_head", "transformation_head"]


def regression_head(end: GraphEnd, kind: ModelKind, weights: Mapping[str, Weight]) -> Head:
    """Return the head of a regressor.

    A regressor of transformed targets is trained on these, as scikit-learn does, and predicts the
    targets themselves.
    """
    output = split_outputs(end)[0][0]
    if not kind.target_transformers:
        return make_head(end, "regression", _as_matrix(end, kind, output), "identity")
    score = end.replace_output(output, columns=end.width(output) or 1)
    end.op.node("Identity", _inverted(end, kind, score), outputs=[output])
    return make_head(end, "regression", _as_matrix(end, kind, score), "identity", prediction=output)


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
