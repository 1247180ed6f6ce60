"""Passes over the rows of an epoch: in memory, or in chunks that are read while others are trained on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from .batches import epoch_order
from .buffers import Data

__all__ = ["MemoryPasses", "Passes", "Position", "ReadingFailed", "Unfinished", "read_chunks"]

Chunk = tuple[Data, np.ndarray]


class Position(NamedTuple):
    """Where a training stands inside of an epoch.

    Attributes
    ----------
    epoch : int
        Number of the epoch, counted from 0.
    chunk : int
        Number of the chunk of the epoch, counted from 0.
    batches : int
        Batches of the chunk that are done.
    """

    epoch: int
    chunk: int = 0
    batches: int = 0


class Passes(Protocol):
    """Rows of which an epoch is a pass, in chunks."""

    @property
    def n_samples(self) -> int:
        """Rows of an epoch."""

    def chunks(self, position: Position) -> Generator[Chunk, None, None]:
        """Yield rows, and their numbers in the order they are visited.

        All chunks but the last have whole batches. Closing the iterator ends what reads ahead.

        Parameters
        ----------
        position : Position
            Epoch, and the first batch to yield.
        """


@dataclass(frozen=True)
class MemoryPasses:
    """Rows in memory: an epoch is one chunk.

    Attributes
    ----------
    data : Data
        Rows.
    seed : int or None
        Seed of their orders; None keeps them in their own.
    shard : int
        Number of the part of the data that these rows are.
    """

    data: Data
    seed: int | None
    shard: int = 0

    @property
    def n_samples(self) -> int:
        """Rows of an epoch."""
        return len(self.data)

    def chunks(self, position: Position) -> Generator[Chunk, None, None]:
        """Yield all rows, and their order in an epoch."""
        yield self.data, epoch_order(len(self.data), self.seed, position.epoch, self.shard)


@dataclass(frozen=True)
class Unfinished:
    """An epoch that could not be read to its end, and what its end is trained from.

    Attributes
    ----------
    position : Position
        First batch that was not trained on.
    values, shares : ndarray of shape (n_batches,)
        Objectives of the batches of the epoch so far, and the weights of their rows.
    n_samples : int
        Rows of an epoch.
    raw : dict of str to ndarray
        What the next batch would update.
    best : Snapshot or None
        Weights of the best validation so far.
    """

    position: Position
    values: np.ndarray
    shares: np.ndarray
    n_samples: int
    raw: dict[str, np.ndarray]
    best: Any = None


class ReadingFailed(Exception):
    """The next chunk cannot be read; the cause says why.

    Parameters
    ----------
    result : TrainingResult, default=None
        What was learned before, with its field ``unfinished``.
    """

    def __init__(self, result: Any = None):
        super().__init__(result)
        self.result = result


def read_chunks(passes: Passes, position: Position) -> Generator[Chunk, None, None]:
    """Yield the chunks of an epoch; an error of reading becomes the cause of a ReadingFailed.

    Parameters
    ----------
    passes : Passes
        Rows.
    position : Position
        First batch to yield.

    Yields
    ------
    data : Data
        Rows.
    order : ndarray of int64
        Their numbers in the order they are visited.
    """
    with closing(passes.chunks(position)) as chunks:
        while True:
            try:
                chunk = next(chunks)
            except StopIteration:
                return
            except Exception as error:
                raise ReadingFailed from error
            yield chunk
