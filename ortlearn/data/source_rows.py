"""Features of a source that replace X, and are read again for each computation."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from .chunks import cut
from .prefetch import prefetched
from .rows import Rows
from .source_errors import located
from .sources import Source

__all__ = ["SourceRows"]


class SourceRows:
    """Features of all rows of a source, read chunk by chunk; ``shape`` is (n_rows,)."""

    def __init__(self, source: Source, n_rows: int, size: int, read: Callable[[Any], Any] | None = None):
        self._source = source
        self._size = size
        self._read = read
        self.shape = (n_rows,)

    def __len__(self) -> int:
        return self.shape[0]

    def reading(self, read: Callable[[Any], Any]) -> SourceRows:
        """Return the same rows with a function applied to their features."""
        return SourceRows(self._source, len(self), self._size, read)

    def chunks(self) -> Generator[Any, None, None]:
        """Yield the features of chunks, read ahead."""

        def make() -> Iterator[Any]:
            for rows in cut(self._source.blocks(), self._size):
                yield rows.X if self._read is None else self._read_part(rows)

        return prefetched(make)

    def first(self) -> Any:
        """Return the features of the first chunk."""
        with closing(self.chunks()) as chunks:
            return next(chunks)

    def _read_part(self, rows: Rows) -> Any:
        """Return the result of the function for a chunk; errors name the batch."""
        assert self._read is not None
        read = self._read
        try:
            return read(rows.X)
        except (ValueError, TypeError) as error:
            raise located(rows, lambda part: read(part.X), error) from error

    def toarray(self) -> np.ndarray:
        """Return all rows as one array."""
        with closing(self.chunks()) as chunks:
            return np.concatenate([c.toarray() if hasattr(c, "toarray") else c for c in chunks])
