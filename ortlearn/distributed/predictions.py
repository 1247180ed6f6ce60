"""Lazy predictions of a trained estimator for the partitions of a Dask collection."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import is_dask_collection

from .partitions import is_frame

__all__ = ["lazy_predictions"]


def lazy_predictions(estimator: Any, method: str, X: Any) -> Any:
    """Return the lazy result of a method of an estimator for a Dask collection."""
    local = dask.delayed(estimator, traverse=False)
    if isinstance(X, list | tuple):
        return [dask.delayed(_of_item)(local, method, item) for item in X]
    if not is_dask_collection(X):
        raise ValueError(
            f"X is a {type(X).__name__}, which has no lazy predictions. Read the files with "
            "dask.dataframe.read_parquet, and pass the dataframe."
        )
    example = _example(estimator, method, X)
    if is_frame(X):
        parts, sizes = list(X.to_delayed()), [np.nan] * X.npartitions
    else:
        X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
        parts, sizes = list(X.to_delayed().ravel()), list(X.chunks[0])
    outputs = [None] if not isinstance(example, list) else list(range(len(example)))
    found = [_joined(local, method, parts, sizes, example, number) for number in outputs]
    return found if isinstance(example, list) else found[0]


def _joined(local: Any, method: str, parts: list, sizes: list, example: Any, number: int | None) -> da.Array:
    """Return one output of a method for all partitions as a dask array."""
    like = np.asarray(example if number is None else example[number])
    compute = dask.delayed(partial(_of_part, number=number, like=like[:0]))
    blocks = [
        da.from_delayed(compute(local, method, part), shape=(size, *like.shape[1:]), meta=like[:0])
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)


def _example(estimator: Any, method: str, X: Any) -> Any:
    """Return the result of a method for an artificial sample, or for the first one if that is not valid."""
    if is_frame(X):
        try:
            return getattr(estimator, method)(X._meta_nonempty)
        except ValueError:  # an encoder does not know the categories of the artificial row
            return getattr(estimator, method)(X.head(1, npartitions=-1))
    if X.dtype.kind not in "fiub":
        return getattr(estimator, method)(X[:1].compute())
    return getattr(estimator, method)(np.zeros((1, *X.shape[1:]), X.dtype))


def _of_item(estimator: Any, method: str, item: Any) -> Any:
    return getattr(estimator, method)(item[0] if isinstance(item, tuple) else item)


def _of_part(estimator: Any, method: str, part: Any, number: int | None, like: np.ndarray) -> np.ndarray:
    """Return one output of a method for a partition, which may be empty."""
    if not part.shape[0]:
        return like
    found = getattr(estimator, method)(part)
    return np.asarray(found if number is None else found[number])
