"""Features of a source in the place of X: read again whenever something is computed of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from ..streams import Source, cut, prefetched

__all__ = ["SourceRows"]


class SourceRows:
    """Features of all rows of a source, chunk by chunk.

    Parameters
    ----------
    source : Source
        Rows.
    n_rows : int
        Their number.
    size : int
        Rows that are held at a time.
    read : callable, default=None
        What becomes of the features of a chunk.

    Attributes
    ----------
    shape : tuple of int
        Number of rows.
    """

    def __init__(self, source: Source, n_rows: int, size: int, read: Callable[[Any], Any] | None = None):
        self._source = source
        self._size = size
        self._read = read
        self.shape = (n_rows,)

    def __len__(self) -> int:
        return self.shape[0]

    def reading(self, read: Callable[[Any], Any]) -> SourceRows:
        """Return the same rows, with what a function makes of their features."""
        return SourceRows(self._source, len(self), self._size, read)

    def chunks(self) -> Generator[Any, None, None]:
        """Yield the features of chunks, read ahead."""

        def make() -> Iterator[Any]:
            for rows in cut(self._source.blocks(), self._size):
                yield rows.X if self._read is None else self._read(rows.X)

        return prefetched(make)

    def by_chunks(self, function: Callable[..., np.ndarray], others: Sequence[np.ndarray]) -> np.ndarray:
        """Return the results of a function of chunks, and of the same rows of other arrays."""
        results, start = [], 0
        with closing(self.chunks()) as chunks:
            for chunk in chunks:
                stop = start + chunk.shape[0]
                results.append(_of_dense(function, chunk, [other[start:stop] for other in others]))
                start = stop
        return np.concatenate(results)

    def toarray(self) -> np.ndarray:
        """Return all rows as one array."""
        with closing(self.chunks()) as chunks:
            return np.concatenate([c.toarray() if hasattr(c, "toarray") else c for c in chunks])


def _of_dense(function: Callable[..., np.ndarray], chunk: Any, others: list[np.ndarray]) -> np.ndarray:
    """Return the result of a chunk; sparse rows are made dense some at a time."""
    if not hasattr(chunk, "toarray"):
        return function(chunk, *others)
    size = max(1, 2**22 // max(1, chunk.shape[1]))
    parts = range(0, chunk.shape[0], size)
    return np.concatenate(
        [function(chunk[i : i + size].toarray(), *(other[i : i + size] for other in others)) for i in parts]
    )
