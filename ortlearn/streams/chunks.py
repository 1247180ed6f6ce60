"""Blocks of any size become chunks of one size."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

__all__ = ["chunk_size", "cut", "whole_blocks"]


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


def cut(
    blocks: Iterable[Any], size: int, join: Callable[[Sequence[Any]], Any], skipped: int = 0
) -> Generator[Any, None, None]:
    """Yield what comes in blocks in chunks of one size; the last one may be smaller.

    Parameters
    ----------
    blocks : iterable
        What has a length and a method ``part(start, stop)``.
    size : int
        Rows of a chunk.
    join : callable
        Makes one of several.
    skipped : int, default=0
        Rows of the first blocks that are left out.

    Yields
    ------
    object
        Chunks.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.streams import Rows, cut
    >>> blocks = (Rows(np.arange(start, start + 4)) for start in (0, 4, 8))
    >>> [chunk.X.tolist() for chunk in cut(blocks, 5, Rows.join)]
    [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]
    """
    kept: list[Any] = []
    n_kept = 0
    for block in blocks:
        start, n_rows = min(skipped, len(block)), len(block)
        skipped -= start
        while start < n_rows:
            stop = min(n_rows, start + size - n_kept)
            kept.append(block if stop - start == n_rows else block.part(start, stop))
            n_kept += stop - start
            start = stop
            if n_kept == size:
                whole, kept, n_kept = join(kept), [], 0
                yield whole
    if kept:
        yield join(kept)


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
