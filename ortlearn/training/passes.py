"""Passes over the rows of an epoch, in chunks that are read while others are trained on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from .buffers import Data

__all__ = ["Passes", "PassPosition", "ReadingFailed", "Unfinished", "read_chunks"]

Chunk = tuple[Data, np.ndarray]


class PassPosition(NamedTuple):
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

    def chunks(self, position: PassPosition) -> Generator[Chunk, None, None]:
        """Yield rows, and their numbers in the order they are visited.

        All chunks but the last have whole batches. Closing the iterator ends what reads ahead.

        Parameters
        ----------
        position : PassPosition
            Epoch, and the first batch to yield.
        """


@dataclass(frozen=True)
class Unfinished:
    """An epoch that could not be read to its end, and what its end is trained from.

    Attributes
    ----------
    position : PassPosition
        First batch that was not trained on.
    values, shares : ndarray of shape (n_batches,)
        Objectives of the batches of the epoch so far, and the weights of their rows.
    n_samples : int
        Rows of an epoch.
    raw : dict of str to ndarray
        What the next batch would update.
    best_weights, best_states : dict
        What the epoch of the best validation so far left; empty where nothing is kept.
    """

    position: PassPosition
    values: np.ndarray
    shares: np.ndarray
    n_samples: int
    raw: dict[str, np.ndarray]
    best_weights: dict[str, np.ndarray] = field(default_factory=dict)
    best_states: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)


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


def read_chunks(passes: Passes, position: PassPosition) -> Generator[Chunk, None, None]:
    """Yield the chunks of an epoch; an error of reading becomes the cause of a ReadingFailed.

    Parameters
    ----------
    passes : Passes
        Rows.
    position : PassPosition
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
