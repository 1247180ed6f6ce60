"""Errors of data that do not fit a model: what they are, what the model takes, and what to do."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exceptions import ConversionError

if TYPE_CHECKING:
    from ..conversion.trainable_model import OwnLoss
    from ..models import Scores

__all__ = [
    "check_inputs_of_loss",
    "check_scores_of_file",
    "other_classes",
    "other_number_of_classes",
    "too_few_classes",
]

#: How classes are named where y has only some of them.
NAMED = "fit(X, y, classes=[...]) or the first partial_fit(X, y, classes=[...])"
#: Parameter that makes an ONNX file without an output of labels a classifier.
CLASSIFIER = (
    "If these outputs are scores or probabilities of classes, learning_loss='log_loss' trains it as a "
    "classifier: the file has no output of labels that says so."
)


def other_classes(
    unknown: np.ndarray, classes: np.ndarray, from_file: bool, origin: str | None
) -> ValueError:
    """Return the error of labels that are none of the classes of a model."""
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
            "An ONNX file keeps its classes: leave rows of other classes out, or give the file a layer for "
            "the new classes with ortlearn.onnx_files.replace_head."
        )
    else:
        cure = (
            "A fitted model keeps its classes. To train others, pass an unfitted estimator, such as "
            "sklearn.base.clone(estimator), and name all that may come in fit(X, y, classes=...) or in the "
            "first call of partial_fit. Otherwise leave out the rows of these labels."
        )
    return ValueError(text + cure)


def _listed(classes: np.ndarray) -> str:
    """Return classes as a list, the first ten of them where there are more."""
    more = f" and {len(classes) - 10} more" if len(classes) > 10 else ""
    return f"{classes[:10].tolist()}{more}"


def other_number_of_classes(n_scores: int, classes: np.ndarray) -> ConversionError:
    """Return the error of a model whose scores are not one for each class."""
    cure = "Leave rows of other classes out, or train a model with a score for each of them."
    if len(classes) < n_scores:
        cure = f"If y lacks some classes, name all of them: {NAMED}."
    return ConversionError(
        f"The model has {n_scores} scores for the classes {classes.tolist()}: it must have one score for "
        f"each class, or one for two classes. {cure}"
    )


def too_few_classes(classes: np.ndarray) -> ValueError:
    """Return the error of labels of one class."""
    return ValueError(
        f"A classifier needs samples of at least 2 classes, y has {len(classes)} class: {classes.tolist()}. "
        f"If y lacks some classes, name all of them: {NAMED}."
    )


def check_scores_of_file(y: Any, scores: Scores) -> None:
    """Raise an error for classes as labels of an ONNX file that is taken for a regressor."""
    values, n_outputs = np.asarray(y), scores.n_outputs
    one_column = values.ndim == 1 or values.shape[1:] == (1,)
    kind = values.dtype.kind
    if kind in "US" or (kind == "O" and any(isinstance(value, str) for value in values.flat)):
        raise ValueError(f"y has texts, and the ONNX file is taken for a regressor. {CLASSIFIER}")
    if scores.positions is not None and kind in "iub" and not scores.positions.fits(values.shape):
        raise ValueError(
            f"y has whole numbers of shape {values.shape}, and the ONNX file is taken for a regressor of "
            f"outputs (n, {', '.join(map(str, scores.positions.shape))}). {CLASSIFIER}"
        )
    if scores.positions is None and one_column and n_outputs > 1:
        raise ValueError(
            f"y has 1 outputs, the model has {n_outputs}: the ONNX file is taken for a regressor. "
            f"{CLASSIFIER}"
        )


def check_inputs_of_loss(
    own: OwnLoss, inputs: Collection[str], names: Collection[str], weighted: bool
) -> None:
    """Raise an error for features under the names of the inputs that take labels and weights of samples.

    ``inputs`` are those that take X, ``names`` the columns that X has, ``weighted`` is whether weights of the
    samples were passed.
    """
    if own.row_weight in names and not weighted:
        raise ValueError(
            f"X has a column {own.row_weight!r}, and the input of this name takes the weights of the "
            "samples. If it is a feature, set the parameter weight_name= to another name; if it holds "
            "weights, pass it as sample_weight=."
        )
    lacking = sorted(set(inputs) - set(names))
    if own.label in names and lacking:
        raise ValueError(
            f"X has a column {own.label!r}, and the input of this name takes y; X has none of the names "
            f"{lacking}. If {own.label!r} is a feature, set the parameter label_name= to the input of y."
        )
