"""Passes over the training samples: in memory, or in chunks that are read during the training."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

import numpy as np

from .orders import ORDER_VERSION, epoch_order
from .samples import Data

__all__ = ["Chunk", "PassesInMemory", "Passes"]

#: Samples as a step loads them (of a cluster, the result of a round), and the order in which to visit them.
Chunk = tuple[Any, np.ndarray]


class Passes(Protocol):
    """Source of the samples of each epoch, in chunks."""

    @property
    def n_samples(self) -> int:
        """Number of samples of an epoch."""

    def chunks(self, epoch: int, n_skipped: int) -> Generator[Chunk, None, None]:
        """Yield the samples of an epoch in chunks, without the first ``n_skipped``.

        All chunks but the last consist of full batches. Closing the iterator stops reading ahead.
        """


class PassesInMemory:
    """All samples as one chunk."""

    def __init__(self, data: Data, seed: int | None, shard: int = 0, version: int = ORDER_VERSION):
        self._data, self._seed, self._shard, self._version = data, seed, shard, version

    @property
    def n_samples(self) -> int:
        """Number of samples of an epoch."""
        return len(self._data)

    def chunks(self, epoch: int, n_skipped: int) -> Generator[Chunk, None, None]:
        """Yield all samples, and the order of those to visit."""
        # For sparse data, the order is a large part of the memory.
        dtype = np.int32 if self._data.is_sparse and len(self._data) < 2**30 else np.int64
        order = epoch_order(len(self._data), self._seed, epoch, self._shard, self._version, dtype)
        yield self._data, order[n_skipped:]
