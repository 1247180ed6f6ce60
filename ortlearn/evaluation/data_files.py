"""Data files: features, labels, sample weights and groups by the names of columns."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .frames import frame_parts, read_frame
from .messages import shown
from .table_checks import check_texts

__all__ = ["Table", "column_options", "read_table", "table_parts"]


@dataclass(frozen=True)
class Table:
    """Samples of a data file; groups are the values of the column to compare by, as text."""

    name: str
    features: Any
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    #: Features of all rows of the file; None if these are all.
    whole: Any = None

    def __len__(self) -> int:
        return len(self.features)

    def take(self, rows: np.ndarray) -> Table:
        """Return some samples."""
        parts: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows]
            for name in ("labels", "weights", "groups")
        }
        whole = self.features if self.whole is None else self.whole
        return replace(self, features=self.features.iloc[rows].reset_index(drop=True), whole=whole, **parts)


def column_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of :func:`read_table` from the options of a command."""
    return {name: getattr(options, name) for name in ("label", "weights", "drop", "text", "separator")}


def read_table(
    path: str,
    *,
    label: str | None = None,
    weights: str | None = None,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    by: str | None = None,
    separator: str = ",",
) -> Table:
    """Read a data file, the files of a folder, or those of a pattern.

    ``label``, ``weights``, ``drop``, ``text`` and ``by`` are names of columns.
    """
    columns: dict[str, Any] = {"label": label, "weights": weights, "drop": drop, "text": text, "by": by}
    return _table(path, read_frame(path, separator, text), **columns)


def table_parts(path: str, *, separator: str = ",", **columns: Any) -> Iterator[Table]:
    """Yield the samples of files that may be larger than memory, with the arguments of :func:`read_table`."""
    for frame in frame_parts(path, separator, columns.get("text", ())):
        yield _table(path, frame, **columns)


def _table(
    path: str,
    frame: Any,
    *,
    label: str | None = None,
    weights: str | None = None,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    by: str | None = None,
) -> Table:
    """Return features, labels, weights and groups of a frame, checked."""
    for name in (label, weights, by, *drop, *text):
        if name is not None:
            _check_column(frame, name, path)
    if label is not None and label in (weights, *drop):
        raise ValueError(f"column {label!r} is the label. It cannot be dropped or be the weights.")
    check_texts(frame.drop(columns=[*set(drop)]), path, text)
    features = frame.drop(columns=[*{label, weights, *drop} - {None}])
    if features.shape[1] == 0:
        raise ValueError(f"{path} has no column besides {shown(frame.columns)}: there are no features.")
    return Table(
        path,
        features,
        None if label is None else _labels(frame[label], label, path),
        None if weights is None else _weights(frame[weights], weights, path),
        None if by is None else _texts(frame[by]),
    )


def _check_column(frame: Any, name: str, path: str) -> None:
    if name in frame.columns:
        return
    hint = ""
    if len(frame.columns) == 1 and any(mark in frame.columns[0] for mark in ",;\t|"):
        hint = " The names look like those of several columns: choose their separator with --separator."
    raise ValueError(f"{path} has no column {name!r}, but {shown(frame.columns)}.{hint}")


def _labels(values: Any, name: str, path: str) -> np.ndarray:
    missing = int(values.isna().sum())
    if missing:
        raise ValueError(
            f"column {name!r} of {path} has no label in {missing} of {len(values)} rows. Remove these rows."
        )
    return values.to_numpy()


def _weights(values: Any, name: str, path: str) -> np.ndarray:
    from pandas.api.types import is_numeric_dtype

    if not is_numeric_dtype(values):
        raise ValueError(f"column {name!r} of {path} has texts, but sample weights must be numbers.")
    weights = values.to_numpy(float)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"column {name!r} of {path}: sample weights must be finite, and not negative.")
    if not weights.sum() > 0:
        raise ValueError(f"column {name!r} of {path}: all sample weights are zero.")
    return weights


def _texts(values: Any) -> np.ndarray:
    missing = values.isna().to_numpy()
    return np.where(missing, "(missing)", values.astype(str).to_numpy(object))
