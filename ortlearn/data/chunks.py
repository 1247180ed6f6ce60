"""Cut blocks of any size into chunks of equal size."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..exceptions import SourceError
from .sample_blocks import SampleBlock
from .tables import Table

__all__ = ["ArrayPool", "chunk_size", "cut", "whole_blocks"]


def chunk_size(n_samples: int, batch_size: int, shuffle_buffer: int) -> int:
    """Return the size of a chunk: all samples if the buffer holds them, else whole batches, at least one."""
    if n_samples <= max(shuffle_buffer, batch_size):
        return n_samples
    return max(batch_size, shuffle_buffer // batch_size * batch_size)


class ArrayPool:
    """Two arrays that are used alternately, because allocation costs more than writing the block."""

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
    """Chunk that is filled with blocks; matrices are written directly into one array."""

    def __init__(self, size: int, dtype: np.dtype | None, pool: ArrayPool | None):
        self._size, self._dtype, self._pool = size, dtype, pool
        self._matrix: np.ndarray | None = None
        self._parts: list[SampleBlock] = []
        self.n_samples = 0

    def add(self, block: SampleBlock) -> None:
        """Append a block."""
        start, self.n_samples = self.n_samples, self.n_samples + len(block)
        X = block.X
        if isinstance(X, Table) and self._dtype is not None and X.holds_numbers:
            X.write(self._array(X.width, self._dtype)[start : self.n_samples])
            block = replace(block, X=None, n_samples=len(X))
        elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f" and self._takes(X):
            self._array(X.shape[1], X.dtype)[start : self.n_samples] = X
            block = replace(block, X=None, n_samples=len(X))
        self._parts.append(block)

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

    def finish(self) -> SampleBlock:
        """Return all samples that were added."""
        if self._matrix is None:
            return SampleBlock.join(self._parts)
        if any(part.X is not None for part in self._parts):
            raise SourceError(
                f"Features between {self._parts[0].where} and {self._parts[-1].where} of the source have "
                "different types or numbers of columns. Convert all samples to the same type and columns."
            )
        return replace(SampleBlock.join(self._parts), X=self._matrix[: self.n_samples])


def cut(
    blocks: Iterable[SampleBlock],
    size: int,
    dtype: np.dtype | None = None,
    skipped: int = 0,
    pool: ArrayPool | None = None,
) -> Generator[SampleBlock, None, None]:
    """Cut blocks of samples into chunks of equal size; the last chunk may be smaller.

    Numeric columns are converted to a matrix of type ``dtype``, if given. With ``pool``, a chunk is
    overwritten when the next but one is made.
    """
    chunk = _Chunk(size, dtype, pool)
    for block in blocks:
        start, n_samples = min(skipped, len(block)), len(block)
        skipped -= start
        while start < n_samples:
            stop = min(n_samples, start + size - chunk.n_samples)
            chunk.add(block if stop - start == n_samples else block.part(start, stop))
            start = stop
            if chunk.n_samples == size:
                whole, chunk = chunk.finish(), _Chunk(size, dtype, pool)
                yield whole
                del whole  # it may be large
    if chunk.n_samples:
        yield chunk.finish()


def whole_blocks(numbers: Sequence[int], sizes: Sequence[int], skipped: int) -> tuple[Sequence[int], int]:
    """Return the blocks to read after skipping samples, and how many to skip in the first of them."""
    for place, number in enumerate(numbers):
        if skipped < sizes[number]:
            return numbers[place:], skipped
        skipped -= sizes[number]
    return [], skipped
