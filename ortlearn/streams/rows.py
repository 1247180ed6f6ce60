"""Rows of a source: features, labels and weights of a block or a part of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

__all__ = ["Rows", "joined", "part_of"]


@dataclass(frozen=True)
class Rows:
    """Rows of a source.

    Attributes
    ----------
    X : array, sparse matrix, frame, mapping of arrays, or Table
        Features; None if they were not requested.
    y : ndarray, sparse matrix or None
        Labels.
    sample_weight : ndarray of shape (n,) or None
        Weights.
    where : str
        Position in the source, for messages.
    n_rows : int or None
        Number of rows; None if it is the length of X, y or sample_weight.
    """

    X: Any
    y: Any = None
    sample_weight: Any = None
    where: str = ""
    n_rows: int | None = None

    def __len__(self) -> int:
        if self.n_rows is not None:
            return self.n_rows
        known = [part for part in (self.X, self.y, self.sample_weight) if part is not None]
        return _length(known[0])

    def part(self, start: int, stop: int) -> Rows:
        """Return a slice of the rows.

        Parameters
        ----------
        start, stop : int
            Bounds of the slice.

        Returns
        -------
        Rows
            Rows from start to stop - 1.
        """
        X, y, weight = (part_of(values, start, stop) for values in (self.X, self.y, self.sample_weight))
        return Rows(X, y, weight, self.where)

    @classmethod
    def join(cls, parts: Sequence[Rows]) -> Rows:
        """Concatenate rows.

        Parameters
        ----------
        parts : sequence of Rows
            At least one; all of the same type.

        Returns
        -------
        Rows
            All rows.
        """
        if len(parts) == 1:
            return parts[0]
        X, y, weight = (joined([getattr(p, name) for p in parts]) for name in ("X", "y", "sample_weight"))
        known = [part.n_rows for part in parts if part.n_rows is not None]
        first, last = parts[0].where, parts[-1].where
        where = first if first == last else f"{first} to {last}"
        return cls(X, y, weight, where, sum(known) if known else None)


def _length(values: Any) -> int:
    if isinstance(values, Mapping):
        return _length(next(iter(values.values())))
    return values.shape[0] if hasattr(values, "shape") else len(values)


def part_of(values: Any, start: int, stop: int) -> Any:
    """Return a slice of the rows of an array, a sparse matrix, a frame, a mapping of arrays, or None."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: part_of(column, start, stop) for name, column in values.items()}
    return values.iloc[start:stop] if hasattr(values, "iloc") else values[start:stop]


def joined(parts: Sequence[Any]) -> Any:
    """Concatenate arrays, sparse matrices, frames or mappings of arrays along the rows."""
    first = parts[0]
    if first is None or len(parts) == 1:
        return first
    if isinstance(first, Mapping):
        return {name: joined([part[name] for part in parts]) for name in first}
    if issparse(first):
        return vstack(parts, format="csr")
    if hasattr(first, "join_parts"):
        return first.join_parts(parts)
    if hasattr(first, "columns"):  # pandas or polars, which is already imported
        return sys.modules[type(first).__module__.partition(".")[0]].concat(parts)
    return np.concatenate([np.asarray(part) for part in parts])
