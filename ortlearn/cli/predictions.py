"""Predictions of a model for rows, and labels of a file as those of a model."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .data_files import Table
from .messages import shown

__all__ = [
    "Model",
    "Predictions",
    "check_no_missing",
    "check_numbers",
    "match_labels",
    "name_text_columns",
    "select_columns",
    "text_columns",
]

#: Parts of messages of scikit-learn and ortlearn about text instead of numbers.
ABOUT_TEXTS = ("could not convert string to float", "must contain numbers", "must hold numbers", "'numeric'")


@dataclass(frozen=True)
class Predictions:
    """Predictions of a model for some rows.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Classes, or numbers.
    probabilities : ndarray of shape (n, n_classes) or None
        Probabilities of the classes.
    scores : ndarray of shape (n,) or (n, n_classes), or None
        Decision values if there are no probabilities; higher values are more likely.
    """

    values: np.ndarray
    probabilities: np.ndarray | None = None
    scores: np.ndarray | None = None


class Model(abc.ABC):
    """Model of a file.

    Attributes
    ----------
    path : str
        File.
    kind : str
        Format of the file, in words.
    source : object
        Object that an estimator of ortlearn takes to train the model.
    task : {"classification", "regression"} or None
        Task; None for others.
    classes : ndarray or None
        Classes; None if they are unknown.
    column_names : list of str or None
        Columns that the model takes by name; None if it takes all columns in their order.
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
        """Return the predictions for the rows of a table."""

    def unused_columns(self, table: Table) -> list[str]:
        """Return the features of a table that the model does not take."""
        known = table.features.columns
        return [] if self.column_names is None else [name for name in known if name not in self.column_names]


def select_columns(table: Table, names: list[str]) -> Any:
    """Return columns of a table by name, in this order."""
    missing = [name for name in names if name not in table.features.columns]
    if missing:
        raise ValueError(
            f"{table.name} lacks columns that the model takes: {shown(missing)}; "
            f"its features are {shown(table.features.columns)}."
        )
    return table.features[names]


def text_columns(frame: Any) -> list[str]:
    """Return the names of the columns that are not numbers."""
    from pandas.api.types import is_numeric_dtype

    return [name for name in frame.columns if not is_numeric_dtype(frame[name])]


@contextmanager
def name_text_columns(table: Table) -> Iterator[None]:
    """Name the columns of text in an error that says that numbers were expected."""
    try:
        yield
    except (ValueError, TypeError) as error:
        names = text_columns(table.features)
        if names and any(text in str(error) for text in ABOUT_TEXTS):
            raise ValueError(_about_texts(table, names)) from error
        raise


def _about_texts(table: Table, names: list[str]) -> str:
    from pandas import to_numeric

    columns = [table.features[name].dropna() for name in names]
    texts = [column[to_numeric(column.astype(str), errors="coerce").isna()] for column in columns]
    example = [value for column in (*texts, *columns) for value in column.head(1)]
    return (
        f"{table.name} has texts where the model takes numbers, in the columns {shown(names)}"
        f"{f' (such as {example[0]!r})' if example else ''}: leave them out with --drop, or correct them."
    )


def check_no_missing(table: Table, model: Model, scores: np.ndarray) -> None:
    """Raise an error if scores of rows with empty cells are NaN."""
    frame = table.features if model.column_names is None else table.features[model.column_names]
    empty = frame.isna()
    if not np.isnan(scores[empty.any(axis=1).to_numpy()]).any():
        return
    raise ValueError(
        f"{table.name} has empty cells in the columns {shown(frame.columns[empty.any()])}, and {model.path} "
        "does not accept missing values: fill the cells, or remove their rows."
    )


def check_numbers(table: Table, frame: Any) -> None:
    """Raise an error that names the columns of text, if there are any."""
    names = text_columns(frame)
    if names:
        raise ValueError(_about_texts(table, names))


def match_labels(labels: np.ndarray, model: Model, name: str) -> np.ndarray:
    """Return labels of a file as classes of the model, or as numbers for regression.

    A label of the file matches the class with the same text: 1, 1.0 and "1" are the same.
    """
    if model.task == "regression":
        return _numbers(labels, name)
    if model.task is None or model.classes is None:
        return labels
    known = {_written(value): value for value in model.classes.tolist()}
    texts = [_written(value) for value in labels.tolist()]
    unknown = sorted({text for text in texts if text not in known})
    if unknown:
        raise ValueError(
            f"column {name!r} has labels that are not classes of the model: {shown(unknown)}; "
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
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {name!r} has texts, and the model predicts numbers: {error}.") from error
    if not np.isfinite(numbers).all():
        raise ValueError(f"column {name!r} has labels that are not finite.")
    return numbers
