"""Sources of rows, which can be read in blocks and several times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..exceptions import SourceError
from .rows import Rows, part_of

__all__ = ["ArraySource", "IterableSource", "Source"]

#: Rows of a block of an array.
ROWS_OF_BLOCK = 65_536


class Source:
    """Source of rows in blocks, in the same order in each pass.

    Attributes
    ----------
    sizes : sequence of int or None
        Number of rows of each block, if it is known before reading; then blocks can be read in any order.
    names : list of str or None
        Names of the features; None if they have no names.
    stamp : str or None
        Text that changes with the content, which is not read for it; None if there is no such text.
    """

    sizes: Sequence[int] | None = None
    names: list[str] | None = None
    stamp: str | None = None

    def blocks(self, numbers: Sequence[int] | None = None, features: bool = True) -> Iterator[Rows]:
        """Yield the rows of blocks; a block may be yielded in several parts.

        Parameters
        ----------
        numbers : sequence of int, default=None
            Blocks to read, in this order; requires known sizes. All blocks by default.
        features : bool, default=True
            Whether features are required. If False, X may be None.

        Yields
        ------
        Rows
            Non-empty parts of blocks.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release files."""


class ArraySource(Source):
    """Array, memory map, sparse matrix or frame, with labels and weights of the same length.

    Parameters
    ----------
    X : array-like with a shape
        Features.
    y, sample_weight : array-like or None
        Labels and weights.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any):
        self._X = X.tocsr() if issparse(X) else X
        self._y = y if y is None or issparse(y) or hasattr(y, "shape") else np.asarray(y)
        self._weight = None if sample_weight is None else np.asarray(sample_weight)
        n_rows = X.shape[0]
        for name, values in (("y", self._y), ("sample_weight", self._weight)):
            if values is not None and values.shape[0] != n_rows:
                raise ValueError(
                    f"{name} has {values.shape[0]} rows, but X has {n_rows}. The numbers must be equal."
                )
        self.sizes = np.diff([*range(0, n_rows, ROWS_OF_BLOCK), n_rows]).tolist()

    def blocks(self, numbers: Sequence[int] | None = None, features: bool = True) -> Iterator[Rows]:
        """Yield slices of all arrays."""
        assert self.sizes is not None
        for number in range(len(self.sizes)) if numbers is None else numbers:
            start = number * ROWS_OF_BLOCK
            own = (self._X if features else None, self._y, self._weight)
            parts = [part_of(values, start, start + self.sizes[number]) for values in own]
            if not features and self._y is None and self._weight is None:
                parts[0] = part_of(self._X, start, start + self.sizes[number])
            yield Rows(parts[0], parts[1], parts[2], f"rows {start} to {start + self.sizes[number] - 1}")


class IterableSource(Source):
    """Iterable, or function that returns an iterator, of batches.

    Parameters
    ----------
    source : callable or iterable
        Yields X, (X, y) or (X, y, sample_weight).
    """

    def __init__(self, source: Any):
        self._source = source

    def blocks(self, numbers: Sequence[int] | None = None, features: bool = True) -> Iterator[Rows]:
        """Yield the batches of a new iterator."""
        items = self._source() if callable(self._source) else self._source
        for number, item in enumerate(items):
            rows = self._rows(item if isinstance(item, tuple) else (item,), f"batch {number}")
            if len(rows):
                yield rows

    @staticmethod
    def _rows(item: tuple, where: str) -> Rows:
        if not 1 <= len(item) <= 3:
            raise SourceError(
                f"{where} of the source has {len(item)} items. It must be X, (X, y) or (X, y, sample_weight)."
            )
        X, y, weight = (*item, None, None)[:3]
        if issparse(X):
            X = X.tocsr()
        elif not hasattr(X, "shape") and not isinstance(X, dict):
            try:
                X = np.asarray(X)
            except ValueError as error:
                raise SourceError(
                    f"X in {where} of the source is not a matrix. Pass X, or a tuple (X, y) or (X, y, "
                    "sample_weight), for each batch."
                ) from error
        y = y if y is None or issparse(y) or hasattr(y, "shape") else np.asarray(y)
        weight = None if weight is None else np.asarray(weight)
        rows = Rows(X, y, weight, where)
        for name, values in (("y", y), ("sample_weight", weight)):
            if values is not None and values.shape[0] != len(rows):
                raise SourceError(
                    f"{where} of the source has {len(rows)} rows of X and {values.shape[0]} of {name}. The "
                    "numbers must be equal."
                )
        return rows
