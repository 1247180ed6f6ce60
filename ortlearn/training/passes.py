"""Passes over the rows of a training: in memory, or in chunks that are read while others are trained on."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

import numpy as np

from .batches import ORDER_VERSION, epoch_order
from .buffers import Data

__all__ = ["Chunk", "PassesInMemory", "Passes"]

#: Rows, and their numbers in the order they are visited.
Chunk = tuple[Data, np.ndarray]


class Passes(Protocol):
    """Rows of which an epoch is a pass, in chunks."""

    @property
    def n_samples(self) -> int:
        """Rows of an epoch."""

    def chunks(self, epoch: int, n_rows: int) -> Generator[Chunk, None, None]:
        """Yield the rows of an epoch in chunks, from a row on.

        All chunks but the last have whole batches. Closing the iterator ends what reads ahead.
        """


class PassesInMemory:
    """All rows as one chunk.

    Parameters
    ----------
    data : Data
        Rows.
    seed : int or None
        Seed of the orders; None keeps the rows in their own.
    shard : int, default=0
        Number of the part of the data that these rows are.
    version : int, default=2
        Version of the orders.
    """

    def __init__(self, data: Data, seed: int | None, shard: int = 0, version: int = ORDER_VERSION):
        self._data, self._seed, self._shard, self._version = data, seed, shard, version

    @property
    def n_samples(self) -> int:
        """Rows of an epoch."""
        return len(self._data)

    def chunks(self, epoch: int, n_rows: int) -> Generator[Chunk, None, None]:
        """Yield all rows, and the order of those to visit."""
        # Of sparse rows an order is a large part of the memory.
        dtype = np.int32 if self._data.is_sparse and len(self._data) < 2**30 else np.int64
        order = epoch_order(len(self._data), self._seed, epoch, self._shard, self._version, dtype)
        yield self._data, order[n_rows:]
