"""Partitions of Dask collections, lists of delayed samples and parquet files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed
from distributed import Future

from ..data.opening import columns_of_files, open_source, parquet_columns, parquet_files
from ..data.sample_blocks import SampleBlock, block_of
from ..exceptions import SourceError
from .cluster import Cluster

__all__ = ["Partitions", "are_on_workers", "is_frame", "open_partitions"]


@dataclass(frozen=True)
class Partitions:
    """Partitions on a cluster; ``is_named`` is whether columns were selected by name, in a known order."""

    blocks: list[Future]
    names: list[str]
    is_named: bool = False

    def take(self, numbers: Sequence[int]) -> Partitions:
        """Return some of the partitions."""
        blocks, names = [self.blocks[i] for i in numbers], [self.names[i] for i in numbers]
        return Partitions(blocks, names, self.is_named)


def is_frame(data: Any) -> bool:
    """Return whether an object is a dask dataframe or series."""
    return is_dask_collection(data) and hasattr(data, "divisions")


def _is_array(data: Any) -> bool:
    return is_dask_collection(data) and hasattr(data, "chunks") and hasattr(data, "numblocks")


def _are_paths(data: Any) -> bool:
    return isinstance(data, str | os.PathLike) or (
        isinstance(data, list | tuple) and bool(data) and all(isinstance(x, str | os.PathLike) for x in data)
    )


def are_on_workers(data: Any) -> bool:
    """Return whether data are a Dask collection, a list of delayed samples, or paths."""
    return is_dask_collection(data) or _are_paths(data) or _are_items(data)


def _are_items(data: Any) -> bool:
    """Return whether an object is a list of delayed samples."""
    return (
        isinstance(data, list | tuple) and bool(data) and all(isinstance(x, Delayed | Future) for x in data)
    )


def open_partitions(cluster: Cluster, X: Any, y: Any, sample_weight: Any, features: Any = None) -> Partitions:
    """Return the partitions of a dask array or dataframe, a list of delayed ones, or parquet files."""
    if _are_paths(X):
        return _of_files(cluster, X, y, sample_weight, features)
    if features is not None:
        raise ValueError(
            "features is supported for parquet files only. Select the columns of a dataframe before."
        )
    if _are_items(X):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "y and sample_weight are not supported for a list of delayed samples. Make items (X, y) or "
                "(X, y, sample_weight)."
            )
        return _computed(cluster, [dask.delayed(_block_of_item)(item) for item in X])
    if not (_is_array(X) or is_frame(X)):
        raise ValueError(
            f"X is a {type(X).__name__}, which is not distributed. Pass a dask array or dataframe, a list of "
            "delayed (X, y), or the path of parquet files. For data in memory, use OrtGradientOptimizer or "
            "dask.array.from_array(X, chunks=(10_000, -1))."
        )
    X, y, sample_weight = _columns_of(X, y, sample_weight)
    parts = _blocks(X)
    others = [_aligned(name, values, X) for name, values in (("y", y), ("sample_weight", sample_weight))]
    columns = [[None] * len(parts) if own is None else own for own in others]
    blocks = [dask.delayed(_block_of_parts)(*part) for part in zip(parts, *columns, strict=True)]
    return _computed(cluster, blocks)


def _computed(cluster: Cluster, blocks: list[Delayed]) -> Partitions:
    cluster.check()
    return Partitions(cluster.client.compute(blocks), [f"Partition {i}" for i in range(len(blocks))])


def _columns_of(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return features, labels and weights, where y and sample_weight may be names of columns of X."""
    named = [
        item if isinstance(item, list) and item and isinstance(item[0], str) else [item]
        for item in (y, sample_weight)
        if isinstance(item, str) or (isinstance(item, list) and item and isinstance(item[0], str))
    ]
    if not named:
        return X, y, sample_weight
    if not is_frame(X):
        raise ValueError(
            f"y and sample_weight name columns, which X (type {type(X).__name__}) does not have. Pass a dask "
            "dataframe or parquet files, or labels and weights as arrays."
        )
    taken = [name for names in named for name in names]
    missing = [name for name in taken if name not in X.columns]
    if missing:
        raise ValueError(
            f"X has no columns {missing}, which y or sample_weight name. Its columns are {list(X.columns)}."
        )
    rest = X.drop(columns=taken)
    own = [X[item] if isinstance(item, str | list) and item else item for item in (y, sample_weight)]
    return rest, own[0], own[1]


def _blocks(data: Any) -> list[Delayed]:
    """Return the partitions of a collection; blocks of an array are joined along all axes but the first."""
    if _is_array(data):
        if any(count > 1 for count in data.numblocks[1:]):
            data = data.rechunk(dict.fromkeys(range(1, data.ndim), -1))
        return list(data.to_delayed().ravel())
    return list(data.to_delayed())


def _aligned(name: str, values: Any, X: Any) -> list[Delayed] | None:
    """Return the partitions of labels or weights, aligned with those of X."""
    if values is None:
        return None
    known = _is_array(X) and not np.isnan(X.chunks[0]).any()
    if not is_dask_collection(values):
        if not known:
            raise ValueError(
                f"{name} is a {type(values).__name__}, and the partitions of X have an unknown number of "
                f"samples. Pass {name} as a dask collection, or call X.compute_chunk_sizes() before."
            )
        import dask.array as da

        values = da.from_array(np.asarray(values), chunks=(X.chunks[0], *((-1,) * (np.ndim(values) - 1))))
    elif known and _is_array(values) and not np.isnan(values.chunks[0]).any():
        if values.shape[0] != X.shape[0]:
            raise ValueError(
                f"X has {X.shape[0]} samples, and {name} has {values.shape[0]}. The numbers must be equal."
            )
        values = values.rechunk({0: X.chunks[0]})
    parts, n_blocks = _blocks(values), X.numblocks[0] if _is_array(X) else X.npartitions
    if len(parts) != n_blocks:
        raise ValueError(
            f"X has {n_blocks} partitions, and {name} has {len(parts)}. Take both from the same collection, "
            "or repartition one of them."
        )
    return parts


def _block_of_item(item: Any) -> SampleBlock:
    """Return the samples of an item of a list: X, (X, y) or (X, y, sample_weight)."""
    return block_of(tuple(item) if isinstance(item, list) else item)


def _block_of_parts(X: Any, y: Any, sample_weight: Any) -> SampleBlock:
    """Return the samples of a partition."""
    return block_of((X, y, sample_weight))


def _of_files(cluster: Cluster, paths: Any, y: Any, sample_weight: Any, features: Any) -> Partitions:
    """Return the partitions of parquet files: the files, or the row groups of a single file."""
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    listed = cluster.gather([cluster.submit(parquet_files, os.fspath(path)) for path in several])
    files = [file for found in listed for file in found]
    if not files:
        raise SourceError("X is an empty list of paths: pass the paths of parquet files.")
    names = [f"File {file}" for file in files]
    known = cluster.gather([cluster.submit(parquet_columns, file) for file in files], names=names)
    schemas = [(file, schema) for file, (schema, _) in zip(files, known, strict=True)]
    features, schema = columns_of_files(schemas, y, sample_weight, features)
    parts: list[tuple[str, list[int] | None]] = [(file, None) for file in files]
    if len(files) == 1:
        parts = [(files[0], [number]) for number in range(known[0][1])]
        names = [f"Row group {number} of {files[0]}" for number in range(known[0][1])]
    columns = (y, sample_weight, features, schema)
    return Partitions([cluster.submit(_block_of_file, *part, *columns) for part in parts], names, True)


def _block_of_file(
    path: str, numbers: list[int] | None, y: Any, sample_weight: Any, features: Any, schema: Any
) -> SampleBlock:
    """Return the samples of a file, or of some of its row groups."""
    source = open_source(path, y, sample_weight, features, schema)
    try:
        parts = list(source.blocks(numbers))
    finally:
        source.close()
    return SampleBlock.join(parts) if parts else SampleBlock(np.zeros((0, len(features))))
