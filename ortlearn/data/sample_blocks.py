"""Blocks of samples of a source: features, labels and weights of a block or a part of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.utils import check_consistent_length

from ..exceptions import SourceError

__all__ = ["SampleBlock", "joined", "part_of", "block_of", "weights_fault"]


@dataclass(frozen=True)
class SampleBlock:
    """Samples of a source, with their position in the source for messages.

    ``n_samples`` is given if neither X, y nor sample_weight has their length. ``places`` are the position and
    the number of samples of each part, if blocks are joined.
    """

    X: Any
    y: Any = None
    sample_weight: Any = None
    where: str = ""
    n_samples: int | None = None
    places: tuple[tuple[str, int], ...] = ()

    def __len__(self) -> int:
        if self.n_samples is not None:
            return self.n_samples
        known = [part for part in (self.X, self.y, self.sample_weight) if part is not None]
        return _length(known[0])

    def part(self, start: int, stop: int) -> SampleBlock:
        """Return the samples from ``start`` to ``stop - 1``."""
        X, y, weight = (part_of(values, start, stop) for values in (self.X, self.y, self.sample_weight))
        return SampleBlock(X, y, weight, self.where)

    @property
    def parts(self) -> Iterator[SampleBlock]:
        """Parts that were joined."""
        start = 0
        for where, n_samples in self.places or ((self.where, len(self)),):
            yield replace(self.part(start, start + n_samples), where=where)
            start += n_samples

    @classmethod
    def join(cls, parts: Sequence[SampleBlock]) -> SampleBlock:
        """Concatenate parts of the same type, at least one."""
        if len(parts) == 1:
            return parts[0]
        X, y, weight = (joined([getattr(p, name) for p in parts]) for name in ("X", "y", "sample_weight"))
        known = [part.n_samples for part in parts if part.n_samples is not None]
        first, last = parts[0].where, parts[-1].where
        where = first if first == last else f"{first} to {last}"
        places = tuple((part.where, len(part)) for part in parts)
        return cls(X, y, weight, where, sum(known) if known else None, places)


def block_of(item: Any, where: str = "") -> SampleBlock:
    """Return the samples of an item, which is X, (X, y) or (X, y, sample_weight)."""
    parts = item if isinstance(item, tuple) else (item,)
    if not 1 <= len(parts) <= 3:
        raise SourceError(f"The tuple has {len(parts)} items. It must be X, (X, y) or (X, y, sample_weight).")
    X, y, weight = (*parts, None, None)[:3]
    block = SampleBlock(_features(X), _array(y, "y"), _array(weight, "sample_weight"), where)
    if block.y is not None:
        try:
            check_consistent_length(np.empty(len(block)), block.y)
        except ValueError as error:
            raise SourceError(str(error)) from error
    if block.sample_weight is not None and block.sample_weight.shape[0] != len(block):
        raise SourceError(weights_fault(f"the shape {block.sample_weight.shape} for {len(block)} samples"))
    return block


def weights_fault(fault: str) -> str:
    """Return the message for sample weights that have a fault."""
    return f"sample_weight has {fault}: it must have one number >= 0 per sample."


def _features(X: Any) -> Any:
    """Return features as an array, a CSR matrix, a frame or a dictionary of arrays."""
    if isinstance(X, Mapping):
        return {name: _array(values, f"column {name!r} of X") for name, values in X.items()}
    if X is None or isinstance(X, str | bytes | set) or hasattr(X, "num_columns"):
        raise SourceError(
            f"X is a {type(X).__name__}: pass an array, a sparse matrix or a frame, alone or in a tuple "
            "(X, y) or (X, y, sample_weight)."
        )
    X = X.tocsr() if issparse(X) else X
    return X if hasattr(X, "columns") else _array(X, "X")


def _array(values: Any, name: str) -> Any:
    """Return lists, series, and arrays with types other than those of NumPy, as NumPy arrays."""
    is_plain = isinstance(getattr(values, "dtype", None), np.dtype) and not hasattr(values, "iloc")
    if values is None or issparse(values) or is_plain:
        found = values
    else:
        try:
            found = np.asarray(values)
        except ValueError as error:
            raise SourceError(
                f"The samples of {name} differ in shape. Pass samples of one shape, and labels and weights "
                "in a tuple (X, y) or (X, y, sample_weight)."
            ) from error
        if hasattr(getattr(values, "dtype", None), "na_value") and found.dtype.kind in "iub":
            found = found.astype(np.float64)  # as scikit-learn converts nullable types of pandas
    if found is not None and not found.shape:
        raise SourceError(f"{name} is {values!r}, which has no samples: pass an array.")
    return found


def _length(values: Any) -> int:
    if isinstance(values, Mapping):
        return _length(next(iter(values.values())))
    return values.shape[0] if hasattr(values, "shape") else len(values)


def part_of(values: Any, start: int, stop: int) -> Any:
    """Return a slice of the rows of an array, a sparse matrix, a frame, a mapping of arrays, or None."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: part_of(column, start, stop) for name, column in values.items()}
    return values.iloc[start:stop] if hasattr(values, "iloc") else values[start:stop]


def joined(parts: Sequence[Any]) -> Any:
    """Concatenate arrays, sparse matrices, frames or mappings of arrays along the samples."""
    first = parts[0]
    if first is None or len(parts) == 1:
        return first
    if isinstance(first, Mapping):
        return {name: joined([part[name] for part in parts]) for name in first}
    if issparse(first):
        return vstack(parts, format="csr")
    if hasattr(first, "join_parts"):
        return first.join_parts(parts)
    if hasattr(first, "columns"):  # pandas or polars, which is already imported
        return sys.modules[type(first).__module__.partition(".")[0]].concat(parts)
    return np.concatenate([np.asarray(part) for part in parts])
