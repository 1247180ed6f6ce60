"""Data files: features, labels, sample weights and groups by the names of columns."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .frames import FrameParts, read_frame
from .input_files import name_of
from .messages import shown
from .table_checks import check_texts

__all__ = ["Table", "TableParts", "column_options", "read_sample", "read_table"]


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
    #: Column of the labels.
    label: str = "y"

    def __len__(self) -> int:
        return len(self.features)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return list(self.features.columns)

    @property
    def weight_per_sample(self) -> np.ndarray:
        """Weights, ones by default."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @staticmethod
    def joined(tables: Sequence[Table]) -> Table:
        """Return the samples of several tables with the same columns."""
        if len(tables) == 1:
            return tables[0]
        import pandas as pd

        parts: dict[str, Any] = {}
        for name in ("labels", "weights", "groups"):
            values = [getattr(table, name) for table in tables]
            parts[name] = None if values[0] is None else np.concatenate(values)
        features = pd.concat([table.features for table in tables], ignore_index=True)
        return replace(tables[0], features=features, whole=None, **parts)

    def take(self, indices: np.ndarray) -> Table:
        """Return some samples."""
        parts: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[indices]
            for name in ("labels", "weights", "groups")
        }
        whole = self.features if self.whole is None else self.whole
        features = self.features.iloc[indices].reset_index(drop=True)
        return replace(self, features=features, whole=whole, **parts)


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
    name = name_of(path)
    table = _table(name, read_frame(path, separator, text), **columns)
    _check_sum(None if table.weights is None else float(table.weights.sum()), weights, name)
    return table


class TableParts:
    """Samples of files that may be larger than memory, with the arguments of :func:`read_table`.

    If ``used`` are the features that are needed, others are not read.
    """

    def __init__(self, path: str, *, separator: str = ",", used: Sequence[str] | None = None, **columns: Any):
        self.path = name_of(path)
        named: list[Any] = [columns.get(name) for name in ("label", "weights", "by")]
        only = None if used is None else {*used, *named} - {None}
        self._frames = FrameParts(path, separator, columns.get("text", ()), only=only)
        types, self._columns = self._frames.types, columns
        others = {*named[:2], *columns.get("drop", ())}
        self.feature_names = [name for name in types.names if name not in others]
        for role in ("drop", "text"):
            for name in columns.get(role, ()):
                _check_column(types.names, name, self.path)
            columns[role] = [name for name in columns.get(role, ()) if name in types.read]

    def __len__(self) -> int:
        return self._frames.n_rows

    def __iter__(self) -> Iterator[Table]:
        total = None
        for frame in self._frames:
            table = _table(self.path, frame, **self._columns)
            if table.weights is not None:
                total = (total or 0.0) + float(table.weights.sum())
            yield table
        _check_sum(total, self._columns.get("weights"), self.path)


def read_sample(path: str, most: int, seed: int, **columns: Any) -> tuple[Table, int]:
    """Return a random sample of at most ``most`` samples in their order, and how many there are.

    Each sample gets a random key, and those with the smallest keys are kept: all samples have the same
    probability, and twice ``most`` are in memory.
    """
    parts, rng, n_seen = TableParts(path, **columns), np.random.default_rng(seed), 0
    kept: list[Table] = []
    keys = np.zeros(0)
    for part in parts:
        kept.append(part)
        n_seen += len(part)
        keys = np.append(keys, rng.random(len(part)))
        if len(keys) > 2 * most:
            kept, keys = _smallest(kept, keys, most)
    kept, _ = _smallest(kept, keys, most)
    return kept[0], n_seen


def _smallest(tables: list[Table], keys: np.ndarray, most: int) -> tuple[list[Table], np.ndarray]:
    """Return the samples with the smallest keys as one table, and their keys."""
    table = Table.joined(tables)
    if len(keys) <= most:
        return [table], keys
    indices = np.sort(np.argpartition(keys, most)[:most])
    return [replace(table.take(indices), whole=None)], keys[indices]


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
            _check_column(frame.columns, name, path)
    if label is not None and label in (weights, *drop):
        raise ValueError(f"column {label!r} is the label. It cannot be dropped or be the weights.")
    check_texts(frame.drop(columns=[*set(drop)]), path, text)
    features = frame.drop(columns=[*{label, weights, *drop} - {None}])
    if features.shape[1] == 0:
        raise ValueError(f"{path} has no column besides {shown(frame.columns)}: there are no features.")
    return Table(
        path,
        features.reset_index(drop=True),
        None if label is None else _labels(frame[label], label, path),
        None if weights is None else _weights(frame[weights], weights, path),
        None if by is None else _texts(frame[by]),
        label=label or "y",
    )


def _check_column(columns: Sequence[str], name: str, path: str) -> None:
    if name in columns:
        return
    hint = ""
    if len(columns) == 1 and any(mark in columns[0] for mark in ",;\t|"):
        hint = " The names look like those of several columns: choose their separator with --separator."
    raise ValueError(f"{path} has no column {name!r}, but {shown(columns)}.{hint}")


def _labels(values: Any, name: str, path: str) -> np.ndarray:
    missing = int(values.isna().sum())
    if missing:
        raise ValueError(
            f"column {name!r} of {path} has no label in {missing} of {len(values)} rows. Remove these rows."
        )
    return values.to_numpy()


def _weights(values: Any, name: str, path: str) -> np.ndarray:
    """Return weights as numbers; those of a part of the samples may all be zero."""
    from pandas.api.types import is_numeric_dtype

    if not is_numeric_dtype(values):
        raise ValueError(f"column {name!r} of {path} has texts, but sample weights must be numbers.")
    weights = values.to_numpy(float)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"column {name!r} of {path}: sample weights must be finite, and not negative.")
    return weights


def _check_sum(total: float | None, name: str | None, path: str) -> None:
    """Raise an error if the sum of the sample weights is zero."""
    if total is not None and not total > 0:
        raise ValueError(f"column {name!r} of {path}: all sample weights are zero.")


def _texts(values: Any) -> np.ndarray:
    missing = values.isna().to_numpy()
    return np.where(missing, "(missing)", values.astype(str).to_numpy(object))
