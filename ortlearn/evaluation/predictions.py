"""Predictions of a model, and labels of a file as those of a model."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .data_files import Table, TableParts
from .messages import shown
from .table_checks import ABOUT_GAPS, ABOUT_INFINITY, refused_values, text_columns, texts_for_numbers

__all__ = [
    "Model",
    "Predictions",
    "check_no_missing",
    "check_numbers",
    "explain_values",
    "match_labels",
    "select_columns",
    "used_columns",
]


@dataclass(frozen=True)
class Predictions:
    """Predictions of a model; scores are decision values of a model without probabilities."""

    values: np.ndarray
    probabilities: np.ndarray | None = None
    scores: np.ndarray | None = None

    @staticmethod
    def joined(parts: Sequence[Predictions]) -> Predictions:
        """Return the predictions of all parts; decision values of one part are those of all."""
        if len(parts) == 1:
            return parts[0]
        values = np.concatenate([part.values for part in parts])
        if all(part.probabilities is not None for part in parts):
            return Predictions(values, np.concatenate([part.probabilities for part in parts]))  # type: ignore[misc]
        found = (part.probabilities if part.scores is None else part.scores for part in parts)
        scores = [array for array in found if array is not None]
        if len(scores) < len(parts):
            return Predictions(values)
        if len({array.shape[1:] for array in scores}) > 1:
            scores = [array.reshape(len(array), -1)[:, -1:] for array in scores]
        return Predictions(values, scores=np.concatenate(scores))

    def take(self, samples: np.ndarray) -> Predictions:
        """Return the predictions for some samples."""
        parts = (self.values, self.probabilities, self.scores)
        return Predictions(*(None if part is None else part[samples] for part in parts))  # type: ignore[arg-type]


class Model(abc.ABC):
    """Model of a file: its format, the source to train it from, its task, classes and columns.

    Classes are None if unknown; columns are None if the model takes all of them in their order.
    """

    kind: ClassVar[str]
    path: str
    source: Any
    task: str | None
    classes: np.ndarray | None
    column_names: list[str] | None

    @abc.abstractmethod
    def features(self, table: Table) -> Any:
        """Return the features of a table as the model takes them."""

    @abc.abstractmethod
    def predict(self, table: Table) -> Predictions:
        """Return the predictions for the samples of a table."""

    def unused_columns(self, names: Sequence[str]) -> list[str]:
        """Return those of the names of features that the model does not take."""
        return [] if self.column_names is None else [name for name in names if name not in self.column_names]


def used_columns(*models: Model) -> list[str] | None:
    """Return the columns that some models take; None for all."""
    names = [model.column_names for model in models]
    return None if None in names else [name for taken in names for name in taken or ()]


def select_columns(table: Table, names: list[str]) -> Any:
    """Return columns of a table by name, in this order."""
    missing = [name for name in names if name not in table.features.columns]
    if missing:
        raise ValueError(
            f"{table.name} lacks columns that the model takes: {shown(missing)}; "
            f"its features are {shown(table.features.columns)}."
        )
    return table.features[names]


@contextmanager
def explain_values(table: Table | TableParts, names: list[str] | None = None) -> Iterator[None]:
    """Name file and columns in an error about values; ``names`` are the columns that the model takes."""
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        about_values = any(text in str(error) for text in (ABOUT_GAPS, ABOUT_INFINITY))
        for part in (table,) if isinstance(table, Table) else table if about_values else ():
            # a wrong value may be in another part of the table
            values = part.features if part.whole is None else part.whole
            frame = values if names is None else values[[name for name in values.columns if name in names]]
            refused = refused_values(part.name, frame, str(error))
            if refused is not None:
                raise refused from error
        raise


def check_no_missing(table: Table, model: Model, scores: np.ndarray) -> None:
    """Raise an error if scores of samples with empty cells or infinite values are NaN."""
    frame = table.features if model.column_names is None else table.features[model.column_names]
    numbers = frame.select_dtypes("number").to_numpy(float, na_value=np.nan)
    unusable = frame.isna().any(axis=1).to_numpy() | np.isinf(numbers).any(axis=1)
    if not np.isnan(scores[unusable]).any():
        return
    text = "contains NaN" if frame.isna().to_numpy().any() else "contains infinity"
    refused = refused_values(table.name, frame, text)
    assert refused is not None
    raise refused


def check_numbers(table: Table, frame: Any) -> None:
    """Raise an error that names the columns of text, if there are any."""
    names = text_columns(frame)
    if names:
        values = frame if table.whole is None else table.whole[list(frame.columns)]
        raise refused_values(table.name, values, "") or texts_for_numbers(table.name, values, names)


def match_labels(table: Table, model: Model) -> np.ndarray:
    """Return the labels of a table as classes of the model, or as numbers for regression.

    A label of the file matches the class with the same text: 1, 1.0 and "1" are the same.
    """
    labels, name = np.asarray(table.labels), f"column {table.label!r} of {table.name}"
    if model.task == "regression":
        return _numbers(labels, name)
    if model.task is None or model.classes is None:
        return labels
    known = {_written(value): value for value in model.classes.tolist()}
    texts = [_written(value) for value in labels.tolist()]
    unknown = sorted({text for text in texts if text not in known})
    if unknown:
        raise ValueError(
            f"{name} has labels that are not classes of the model: {shown(unknown)}; "
            f"its classes are {shown(model.classes.tolist())}."
        )
    return np.array([known[text] for text in texts], dtype=model.classes.dtype)


def _written(value: Any) -> str:
    """Return a label as text, the same for numbers that are equal."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return {"True": "1", "False": "0"}.get(str(value), str(value))


def _numbers(labels: np.ndarray, name: str) -> np.ndarray:
    try:
        numbers = labels.astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} has texts, and the model predicts numbers: {error}.") from error
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} has labels that are not finite.")
    return numbers
