"""Errors for data that do not match the model."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exceptions import ConversionError

if TYPE_CHECKING:
    from ..models import Scores
    from ..trainable.trainable_model import OwnLoss

__all__ = [
    "check_inputs_of_loss",
    "check_scores_of_file",
    "other_classes",
    "other_number_of_classes",
    "too_few_classes",
]

#: Calls that pass all classes if y lacks some.
NAMED = "fit(X, y, classes=[...]) or the first partial_fit(X, y, classes=[...])"
#: Advice for an ONNX classifier without an output of labels.
CLASSIFIER = (
    "If these outputs are scores or probabilities of classes, learning_loss='log_loss' trains it as a "
    "classifier: the file has no output of labels that says so."
)


def other_classes(
    unknown: np.ndarray, classes: np.ndarray, from_file: bool, origin: str | None
) -> ValueError:
    """Return the error for labels that are not classes of the model."""
    text = (
        f"y has classes {_listed(unknown)} that the model does not know: {origin or 'it'} has "
        f"{_listed(classes)}. "
    )
    given, known = (all(isinstance(value, str) for value in part.tolist()) for part in (unknown, classes))
    if given != known:
        kinds = ("texts", "numbers") if given else ("numbers", "texts")
        cure = f"The labels are {kinds[0]} and the classes {kinds[1]}: convert y to the type of the classes."
    elif from_file:
        cure = (
            "The classes of an ONNX file are fixed: remove the samples of other classes, or add a layer for "
            "the new classes with ortlearn.onnx_files.replace_head."
        )
    else:
        cure = (
            "The classes of a fitted model are fixed: remove the samples of these labels. To train other "
            "classes, pass an unfitted estimator, such as sklearn.base.clone(estimator), and all classes in "
            "fit(X, y, classes=...) or in the first call of partial_fit."
        )
    return ValueError(text + cure)


def check_validation_classes(y: Any, classes: Any) -> None:
    """Raise an error if validation labels are not classes of the model."""
    if not isinstance(classes, np.ndarray) or np.ndim(y) != 1:
        return
    unknown = sorted(set(np.asarray(y).tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise ValueError(
            f"y_val has classes {_listed(np.array(unknown, dtype=object))} that the model does not know: it "
            f"has {_listed(classes)}. Remove the samples of these labels from X_val and y_val, or train an "
            "unfitted estimator with all classes, fit(X, y, classes=...)."
        )


def _listed(classes: np.ndarray) -> str:
    """Return the text of at most ten classes."""
    more = f" and {len(classes) - 10} more" if len(classes) > 10 else ""
    return f"{classes[:10].tolist()}{more}"


def other_number_of_classes(n_scores: int, classes: np.ndarray) -> ConversionError:
    """Return the error for a model whose number of scores does not match the classes."""
    cure = "Remove the samples of other classes, or train a model with a score for each class."
    if len(classes) < n_scores:
        cure = f"If y lacks some classes, pass all of them: {NAMED}."
    return ConversionError(
        f"The model has {n_scores} scores for the classes {classes.tolist()}: it must have one score per "
        f"class, or a single score for two classes. {cure}"
    )


def too_few_classes(classes: np.ndarray) -> ValueError:
    """Return the error for labels of a single class."""
    return ValueError(
        f"A classifier needs samples of at least 2 classes, y has {len(classes)} class: {classes.tolist()}. "
        f"If y lacks some classes, pass all of them: {NAMED}."
    )


def check_scores_of_file(y: Any, scores: Scores) -> None:
    """Raise an error if y has classes and the ONNX file is treated as a regressor."""
    values, n_outputs = np.asarray(y), scores.n_outputs
    one_column = values.ndim == 1 or values.shape[1:] == (1,)
    kind = values.dtype.kind
    if kind in "US" or (kind == "O" and any(isinstance(value, str) for value in values.flat)):
        raise ValueError(f"y has texts, and the ONNX file is treated as a regressor. {CLASSIFIER}")
    if scores.positions is not None and kind in "iub" and not scores.positions.fits(values.shape):
        raise ValueError(
            f"y has integers of shape {values.shape}, and the ONNX file is treated as a regressor with "
            f"outputs of shape (n, {', '.join(map(str, scores.positions.shape))}). {CLASSIFIER}"
        )
    if scores.positions is None and one_column and n_outputs > 1:
        raise ValueError(
            f"y has 1 output, the model has {n_outputs}: the ONNX file is treated as a regressor. "
            f"{CLASSIFIER}"
        )


def check_inputs_of_loss(
    own: OwnLoss, inputs: Collection[str], names: Collection[str], weighted: bool
) -> None:
    """Raise an error if columns of X have the names of the inputs for labels or sample weights.

    ``inputs`` are the inputs for X, ``names`` the columns of X; ``weighted`` tells whether ``sample_weight``
    was passed.
    """
    if own.row_weight in names and not weighted:
        raise ValueError(
            f"X has a column {own.row_weight!r}, which is the name of the input for sample weights. If it is "
            "a feature, set weight_name to another name; if it contains weights, pass it as sample_weight."
        )
    missing = sorted(set(inputs) - set(names))
    if own.label in names and missing:
        raise ValueError(
            f"X has a column {own.label!r}, which is the name of the input for y, and lacks the columns "
            f"{missing}. If {own.label!r} is a feature, set label_name to the input for y."
        )
