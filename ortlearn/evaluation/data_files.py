"""Data files: features, labels, sample weights and groups by the names of columns."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .messages import check_installed, one_line, shown
from .table_checks import check_separator, check_texts, repeated_names

__all__ = ["Table", "column_options", "read_table"]

EXTRA = "cli"
CSV, PARQUET = (".csv", ".csv.gz"), (".parquet", ".pq")


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
    """Read a data file; ``label``, ``weights``, ``drop``, ``text`` and ``by`` are names of columns."""
    frame = _read_frame(path, separator, text)
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


def _read_frame(path: str, separator: str, text: Sequence[str]) -> Any:
    """Return the data frame of a file with at least one row; the columns ``text`` are read as text."""
    name, separator = path.lower(), check_separator(separator)
    if not name.endswith((*CSV, *PARQUET)):
        raise ValueError(f"{path or repr(path)}: data must be a {', '.join(CSV)} or {PARQUET[0]} file.")
    check_installed("pandas", EXTRA, "data files")
    if name.endswith(PARQUET):
        check_installed("pyarrow", EXTRA, "parquet files")
    if not Path(path).exists():
        raise FileNotFoundError(2, "No such file", path)
    if Path(path).is_dir():
        raise IsADirectoryError(21, "Is a directory", path)
    import pandas as pd

    names = None
    try:
        if name.endswith(PARQUET):
            frame = pd.read_parquet(path)
        else:
            names = pd.read_csv(path, sep=separator, header=None, nrows=1, dtype=str).iloc[0].dropna()
            frame = pd.read_csv(path, sep=separator, dtype=dict.fromkeys(text, str), low_memory=False)
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} is empty.") from None
    except (OSError, ValueError, EOFError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        kind = "parquet" if name.endswith(PARQUET) else "csv"
        advice = " Save the file as UTF-8." if isinstance(error, UnicodeError) else ""
        raise ValueError(f"{path} cannot be read as {kind}: {one_line(error)}{advice}") from error
    repeated = repeated_names([str(column) for column in (frame.columns if names is None else names)])
    if repeated:
        raise ValueError(f"{path} has several columns with the names {shown(repeated)}: rename them.")
    frame.columns = [str(column) for column in frame.columns]
    if len(frame) == 0:
        raise ValueError(f"{path} has no rows, only the columns {shown(frame.columns)}.")
    return frame.reset_index(drop=True)


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
