"""Features of a source that replace X, and are read again for each computation."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from .chunks import cut
from .prefetch import prefetched
from .sample_blocks import SampleBlock
from .source_errors import located
from .sources import Source

__all__ = ["SourceFeatures"]


class SourceFeatures:
    """Features of all samples of a source, read chunk by chunk; ``shape`` is (n_samples,)."""

    def __init__(self, source: Source, n_samples: int, size: int, read: Callable[[Any], Any] | None = None):
        self._source = source
        self._size = size
        self._read = read
        self.shape = (n_samples,)

    def __len__(self) -> int:
        return self.shape[0]

    def reading(self, read: Callable[[Any], Any]) -> SourceFeatures:
        """Return the same samples with a function applied to their features."""
        return SourceFeatures(self._source, len(self), self._size, read)

    def chunks(self) -> Generator[Any, None, None]:
        """Yield the features of chunks, read ahead."""

        def make() -> Iterator[Any]:
            for block in cut(self._source.blocks(), self._size):
                yield block.X if self._read is None else self._read_part(block)

        return prefetched(make)

    def first(self) -> Any:
        """Return the features of the first chunk."""
        with closing(self.chunks()) as chunks:
            return next(chunks)

    def _read_part(self, block: SampleBlock) -> Any:
        """Return the result of the function for a chunk; errors name the batch."""
        assert self._read is not None
        read = self._read
        try:
            return read(block.X)
        except (ValueError, TypeError) as error:
            raise located(block, lambda part: read(part.X), error) from error

    def toarray(self) -> np.ndarray:
        """Return all samples as one array."""
        with closing(self.chunks()) as chunks:
            return np.concatenate([c.toarray() if hasattr(c, "toarray") else c for c in chunks])
