"""Sources of samples, which can be read in blocks and several times."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..exceptions import SourceError
from .sample_blocks import SampleBlock, block_of, part_of

__all__ = ["ArraySource", "IterableSource", "Source", "called"]

#: Rows of a block of an array.
ROWS_OF_BLOCK = 65_536


class Source:
    """Source of samples in blocks, in the same order in each pass.

    Blocks whose ``sizes`` are known before reading can be read in any order. ``stamp``, if there is one, is a
    text that changes with the content, without reading it.
    """

    sizes: Sequence[int] | None = None
    names: list[str] | None = None
    stamp: str | None = None

    def blocks(self, numbers: Sequence[int] | None = None, features: bool = True) -> Iterator[SampleBlock]:
        """Yield the samples of blocks, each in one or several non-empty parts.

        ``numbers`` selects blocks and their order, if their sizes are known. Without ``features``, X may be
        None.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release files."""


class ArraySource(Source):
    """Array, memory map, sparse matrix or frame, with labels and weights of the same length."""

    def __init__(self, X: Any, y: Any, sample_weight: Any):
        block = block_of((X, y, sample_weight))
        self._X, self._y, self._weight, n_samples = block.X, block.y, block.sample_weight, len(block)
        self.sizes = np.diff([*range(0, n_samples, ROWS_OF_BLOCK), n_samples]).tolist()

    def blocks(self, numbers: Sequence[int] | None = None, features: bool = True) -> Iterator[SampleBlock]:
        """Yield slices of all arrays."""
        assert self.sizes is not None
        for number in range(len(self.sizes)) if numbers is None else numbers:
            start = number * ROWS_OF_BLOCK
            own = (self._X if features else None, self._y, self._weight)
            parts = [part_of(values, start, start + self.sizes[number]) for values in own]
            if not features and self._y is None and self._weight is None:
                parts[0] = part_of(self._X, start, start + self.sizes[number])
            yield SampleBlock(
                parts[0], parts[1], parts[2], f"rows {start} to {start + self.sizes[number] - 1}"
            )


class IterableSource(Source):
    """Iterable, or function that returns an iterator, of batches."""

    def __init__(self, source: Any):
        self._source = source
        self._last: Callable[[], Any] = lambda: None

    def blocks(self, numbers: Sequence[int] | None = None, features: bool = True) -> Iterator[SampleBlock]:
        """Yield the batches of a new iterator; errors name the batch."""
        items, number = self._iterator(), 0
        while True:
            try:
                item = next(items)
            except StopIteration:
                return
            except Exception as error:
                raise SourceError(
                    f"Batch {number} of the source cannot be read: {type(error).__name__}: {error}. Correct "
                    "or omit it."
                ) from error
            try:
                block = block_of(item, f"batch {number}")
            except SourceError as error:
                raise SourceError(f"In batch {number} of the source: {error}") from error
            if len(block):
                yield block
            number += 1

    def _iterator(self) -> Iterator[Any]:
        """Return a new iterator of batches."""
        found = called(self._source) if callable(self._source) else self._source
        if not isinstance(found, Iterable):
            raise SourceError(
                f"The function returns {type(found).__name__}, which is not an iterable: return an iterable "
                "of (X, y) or (X, y, sample_weight)."
            )
        items = iter(found)
        if items is self._last():
            raise SourceError(
                f"The same {type(items).__name__} is returned for each pass, and can be read only once: "
                "create a new iterator in each call of the function."
            )
        try:
            self._last = weakref.ref(items)
        except TypeError:  # such as iterators of lists
            self._last = lambda: items
        return items


def called(function: Callable[[], Any]) -> Any:
    """Return the result of the function of a source; its errors become errors of the source."""
    try:
        return function()
    except Exception as error:
        raise SourceError(
            f"The function of the source raised {type(error).__name__}: {error}. It must return an iterator "
            "or a reader in each call."
        ) from error
