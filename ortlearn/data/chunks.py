"""Cut blocks of any size into chunks of equal size."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..exceptions import SourceError
from .rows import Rows
from .tables import Table

__all__ = ["ArrayPool", "chunk_size", "cut", "whole_blocks"]


def chunk_size(n_rows: int, batch_size: int, shuffle_buffer: int) -> int:
    """Return the size of a chunk: all rows if the buffer holds them, else whole batches, at least one."""
    if n_rows <= max(shuffle_buffer, batch_size):
        return n_rows
    return max(batch_size, shuffle_buffer // batch_size * batch_size)


class ArrayPool:
    """Two arrays that are used alternately, because allocation costs more than writing the rows."""

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []

    def array(self, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
        """Return the array of the call before last, or a new one if it does not fit; values are arbitrary."""
        found = self._arrays.pop(0) if len(self._arrays) == 2 else np.empty(0)
        if found.shape != shape or found.dtype != dtype:
            found = np.empty(shape, dtype=dtype)
        self._arrays.append(found)
        return found


class _Chunk:
    """Chunk that is filled with rows; matrices are written directly into one array."""

    def __init__(self, size: int, dtype: np.dtype | None, pool: ArrayPool | None):
        self._size, self._dtype, self._pool = size, dtype, pool
        self._matrix: np.ndarray | None = None
        self._parts: list[Rows] = []
        self.n_rows = 0

    def add(self, rows: Rows) -> None:
        """Append rows."""
        start, self.n_rows = self.n_rows, self.n_rows + len(rows)
        X = rows.X
        if isinstance(X, Table) and self._dtype is not None and X.holds_numbers:
            X.write(self._array(X.width, self._dtype)[start : self.n_rows])
            rows = replace(rows, X=None, n_rows=len(X))
        elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f" and self._takes(X):
            self._array(X.shape[1], X.dtype)[start : self.n_rows] = X
            rows = replace(rows, X=None, n_rows=len(X))
        self._parts.append(rows)

    def _takes(self, X: np.ndarray) -> bool:
        """Return whether a matrix has the type and width of the previous ones."""
        known = self._matrix
        return not self._parts if known is None else known.dtype == X.dtype and known.shape[1] == X.shape[1]

    def _array(self, width: int, dtype: np.dtype) -> np.ndarray:
        """Return the array of the matrices, allocated for the first one."""
        if self._matrix is None:
            shape = self._size, width
            self._matrix = np.empty(shape, dtype) if self._pool is None else self._pool.array(shape, dtype)
        return self._matrix

    def finish(self) -> Rows:
        """Return all rows that were added."""
        if self._matrix is None:
            return Rows.join(self._parts)
        if any(part.X is not None for part in self._parts):
            raise SourceError(
                f"Features between {self._parts[0].where} and {self._parts[-1].where} of the source have "
                "different types or numbers of columns. Convert all rows to the same type and columns."
            )
        return replace(Rows.join(self._parts), X=self._matrix[: self.n_rows])


def cut(
    blocks: Iterable[Rows],
    size: int,
    dtype: np.dtype | None = None,
    skipped: int = 0,
    pool: ArrayPool | None = None,
) -> Generator[Rows, None, None]:
    """Cut blocks of rows into chunks of equal size; the last chunk may be smaller.

    Numeric columns are converted to a matrix of type ``dtype``, if given. With ``pool``, a chunk is
    overwritten when the next but one is made.
    """
    chunk = _Chunk(size, dtype, pool)
    for block in blocks:
        start, n_rows = min(skipped, len(block)), len(block)
        skipped -= start
        while start < n_rows:
            stop = min(n_rows, start + size - chunk.n_rows)
            chunk.add(block if stop - start == n_rows else block.part(start, stop))
            start = stop
            if chunk.n_rows == size:
                whole, chunk = chunk.finish(), _Chunk(size, dtype, pool)
                yield whole
                del whole  # it may be large
    if chunk.n_rows:
        yield chunk.finish()


def whole_blocks(numbers: Sequence[int], sizes: Sequence[int], skipped: int) -> tuple[Sequence[int], int]:
    """Return the blocks to read after skipping rows, and the number of rows to skip in the first of them."""
    for place, number in enumerate(numbers):
        if skipped < sizes[number]:
            return numbers[place:], skipped
        skipped -= sizes[number]
    return [], skipped
