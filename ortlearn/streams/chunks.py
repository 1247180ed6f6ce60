"""Blocks of any size become chunks of one size."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..exceptions import SourceError
from .rows import Rows
from .tables import Table

__all__ = ["Turns", "chunk_size", "cut", "whole_blocks"]


def chunk_size(n_rows: int, batch_size: int, shuffle_buffer: int) -> int:
    """Return the rows of a chunk: whole batches within the buffer, or all rows where the buffer holds them.

    Parameters
    ----------
    n_rows : int
        Rows of a pass.
    batch_size : int
        Rows of a batch.
    shuffle_buffer : int
        Rows that are held at a time.

    Returns
    -------
    int
        At least a batch.

    Examples
    --------
    >>> from ortlearn.streams import chunk_size
    >>> chunk_size(1000, 32, 500), chunk_size(1000, 32, 5), chunk_size(1000, 32, 1000)
    (480, 32, 1000)
    """
    if n_rows <= max(shuffle_buffer, batch_size):
        return n_rows
    return max(batch_size, shuffle_buffer // batch_size * batch_size)


class Turns:
    """Two arrays that take turns: new memory costs more than what is written to it.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.streams import Turns
    >>> turns = Turns()
    >>> first, second, third = (turns.array((2, 1), np.float32) for _ in range(3))
    >>> first is third, first is second
    (True, False)
    """

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []

    def array(self, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
        """Return the array that was asked for before the last one, or a new one.

        Parameters
        ----------
        shape : tuple of int
            Its shape.
        dtype : numpy.dtype
            Its type.

        Returns
        -------
        ndarray
            Array, with any values.
        """
        found = self._arrays.pop(0) if len(self._arrays) == 2 else np.empty(0)
        if found.shape != shape or found.dtype != dtype:
            found = np.empty(shape, dtype=dtype)
        self._arrays.append(found)
        return found


class _Chunk:
    """Rows of a chunk while it is filled: matrices lie in one array from the beginning."""

    def __init__(self, size: int, dtype: np.dtype | None, turns: Turns | None):
        self._size, self._dtype, self._turns = size, dtype, turns
        self._matrix: np.ndarray | None = None
        self._parts: list[Rows] = []
        self.n_rows = 0

    def add(self, rows: Rows) -> None:
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
        """Return whether a matrix is like those before it."""
        known = self._matrix
        return not self._parts if known is None else known.dtype == X.dtype and known.shape[1] == X.shape[1]

    def _array(self, width: int, dtype: np.dtype) -> np.ndarray:
        if self._matrix is None:
            shape = self._size, width
            self._matrix = np.empty(shape, dtype) if self._turns is None else self._turns.array(shape, dtype)
        return self._matrix

    def finish(self) -> Rows:
        if self._matrix is None:
            return Rows.join(self._parts)
        if any(part.X is not None for part in self._parts):
            raise SourceError(
                f"Features between {self._parts[0].where} and {self._parts[-1].where} of the source are of "
                "several types or widths: all rows must have the same."
            )
        return replace(Rows.join(self._parts), X=self._matrix[: self.n_rows])


def cut(
    blocks: Iterable[Rows],
    size: int,
    dtype: np.dtype | None = None,
    skipped: int = 0,
    turns: Turns | None = None,
) -> Generator[Rows, None, None]:
    """Yield what comes in blocks in chunks of one size; the last one may be smaller.

    Parameters
    ----------
    blocks : iterable of Rows
        Rows.
    size : int
        Rows of a chunk.
    dtype : numpy.dtype, default=None
        Type of the matrix that columns of numbers become; they stay columns by default.
    skipped : int, default=0
        Rows of the first blocks that are left out.
    turns : Turns, default=None
        Arrays for matrices, where a chunk is done with once the next but one is asked for.

    Yields
    ------
    Rows
        Chunks.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.streams import Rows, cut
    >>> blocks = (Rows(np.arange(start, start + 4)) for start in (0, 4, 8))
    >>> [chunk.X.tolist() for chunk in cut(blocks, 5)]
    [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]
    """
    chunk = _Chunk(size, dtype, turns)
    for block in blocks:
        start, n_rows = min(skipped, len(block)), len(block)
        skipped -= start
        while start < n_rows:
            stop = min(n_rows, start + size - chunk.n_rows)
            chunk.add(block if stop - start == n_rows else block.part(start, stop))
            start = stop
            if chunk.n_rows == size:
                whole, chunk = chunk.finish(), _Chunk(size, dtype, turns)
                yield whole
                del whole  # it may be large
    if chunk.n_rows:
        yield chunk.finish()


def whole_blocks(numbers: Sequence[int], sizes: Sequence[int], skipped: int) -> tuple[Sequence[int], int]:
    """Return the blocks that are left after some rows, and how many rows of these are to be left out.

    Parameters
    ----------
    numbers : sequence of int
        Blocks in the order in which they are read.
    sizes : sequence of int
        Rows of each block by its number.
    skipped : int
        Rows to leave out.

    Returns
    -------
    numbers : sequence of int
        Blocks to read.
    skipped : int
        Rows of the first of them to leave out.
    """
    for place, number in enumerate(numbers):
        if skipped < sizes[number]:
            return numbers[place:], skipped
        skipped -= sizes[number]
    return [], skipped
