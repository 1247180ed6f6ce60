"""Models and samples as they are given to the functions of this room, as those that are evaluated."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_consistent_length

from ..comparison.measures import numbers_of_copies
from ..evaluation.data_files import Table
from ..evaluation.messages import check_installed
from ..evaluation.model_files import load_model
from ..evaluation.onnx_model import OnnxModel
from ..evaluation.predictions import Model, match_labels
from ..evaluation.sklearn_model import SklearnModel
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.estimator_checks import is_trainer

__all__ = ["as_table", "copies_in", "given_model", "labels_of", "source_of"]


def given_model(model: Any, trusted: Sequence[str] = ()) -> Model:
    """Return a model to evaluate: a fitted estimator, an ONNX model, or a file of one."""
    if isinstance(model, Model):
        return model
    if isinstance(model, str | os.PathLike):
        return load_model(os.fspath(model), trusted)
    if is_onnx_source(model):
        return OnnxModel(model, "the model")
    if not hasattr(model, "predict"):
        raise TypeError(
            "model must be a fitted estimator, an ONNX model (ModelProto or bytes), a file of one or a "
            f"ModelFolder, not {type(model).__name__}."
        )
    return SklearnModel(model, type(model).__name__)


def source_of(model: Model) -> Any:
    """Return the source to train a model from: an estimator of ortlearn is its trained model."""
    if not is_trainer(model.source):
        return model.source
    try:
        return model.source.to_sklearn()
    except ValueError:  # trained from an ONNX file
        return model.source.get_trained_onnx()


def as_table(samples: Any, model: Model, by: str | None, what: str) -> Table:
    """Return samples as a table; they are ``(X, y)`` or ``(X, y, sample_weight)``, and y may be None."""
    if isinstance(samples, Table):
        return samples
    check_installed("pandas", "cli", "samples of an adaptation")
    if not isinstance(samples, tuple) or not 2 <= len(samples) <= 3:
        raise TypeError(f"{what} must be (X, y) or (X, y, sample_weight), not {type(samples).__name__}.")
    X, y, weights = (*samples, None)[:3]
    check_consistent_length(X, y, weights)
    labels = None if y is None else np.asarray(y)
    if labels is not None and labels.ndim != 1:
        raise ValueError(f"y of {what} must have one label for each sample, and has shape {np.shape(y)}.")
    frame = _frame(X, model, what)
    if len(frame) == 0:
        raise ValueError(f"{what} has no sample.")
    groups = None
    if by is not None:
        if not isinstance(by, str):
            raise TypeError(f"by must be the name of a column of X, not {type(by).__name__}.")
        if by not in frame.columns:
            raise ValueError(f"{what} has no column {by!r} to compare by, but {list(frame.columns)[:12]}.")
        values = frame[by]
        groups = np.where(values.isna(), "(missing)", values.astype(str).to_numpy(object))
    return Table(what, frame, labels, None if weights is None else np.asarray(weights, float), groups)


def _frame(X: Any, model: Model, what: str) -> Any:
    """Return X as a frame of pandas."""
    import pandas as pd

    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if isinstance(X, pd.DataFrame):
        return X.set_axis([str(name) for name in X.columns], axis=1).reset_index(drop=True)
    if issparse(X):
        raise TypeError(f"X of {what} is sparse, and must be an array or a frame: pass X.toarray().")
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X of {what} must have two dimensions, and has shape {array.shape}.")
    known = model.column_names
    fitting = known is not None and len(known) == array.shape[1]
    names = known if fitting else [f"x{number}" for number in range(array.shape[1])]
    return pd.DataFrame(array, columns=names)


def copies_in(table: Table, labels: np.ndarray) -> np.ndarray | None:
    """Return numbers of samples, equal for copies; None if there are none."""
    return numbers_of_copies([*(column.to_numpy() for _, column in table.features.items()), labels])


def labels_of(table: Table, model: Model) -> np.ndarray:
    """Return the labels of samples as classes or numbers of a model."""
    if table.labels is None:
        raise ValueError(f"{table.name} has no labels, and an adaptation needs them.")
    return match_labels(table, model)
