"""Check the indices of sparse matrices: scipy and onnxruntime follow them without looking."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_sparse"]

OUTSIDE = "indices outside its shape"


def check_sparse(X: Any) -> None:
    """Raise a ValueError for a sparse matrix whose indices point beyond its shape or its values."""
    problem = (_compressed if X.format in ("csr", "csc", "bsr") else _coordinates)(X)
    if problem:
        raise ValueError(
            f"The sparse matrix of the shape {X.shape} has {problem}: build it again from valid ones."
        )


def _compressed(X: Any) -> str | None:
    blocks = [size // block for size, block in zip(X.shape, getattr(X, "blocksize", (1, 1)), strict=True)]
    n_major, n_minor = blocks[::-1] if X.format == "csc" else blocks
    starts = np.asarray(X.indptr)
    if len(starts) != n_major + 1 or starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
        return "an indptr that does not fit its shape or decreases"
    if starts[-1] > min(len(X.indices), len(X.data)):
        return "an indptr that points beyond its values"
    return None if _within(X.indices[: starts[-1]], n_minor) else OUTSIDE


def _coordinates(X: Any) -> str | None:
    if X.format == "dia":  # offsets outside the shape are left out
        return None
    if X.format == "lil":
        columns = np.concatenate([np.empty(0, np.int64), *(np.asarray(row, np.int64) for row in X.rows)])
        lengths = [len(row) for row in X.rows] == [len(row) for row in X.data]
        return None if lengths and _within(columns, X.shape[1]) else OUTSIDE
    if X.format == "dok":
        pairs = np.array(list(X.keys()), dtype=np.int64).reshape(-1, X.ndim)
        return None if all(map(_within, pairs.T, X.shape)) else OUTSIDE
    places = X.coords if hasattr(X, "coords") else (X.row, X.col)
    if {len(place) for place in places} != {len(X.data)}:
        return "other numbers of values than of indices"
    return None if all(map(_within, places, X.shape)) else OUTSIDE


def _within(places: np.ndarray, size: int) -> bool:
    return not len(places) or bool(places.min() >= 0 and places.max() < size)
