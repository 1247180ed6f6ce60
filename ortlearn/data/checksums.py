"""Checksums of arrays."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.sparse import issparse

__all__ = ["array_text", "checksum"]


def checksum(arrays: Iterable[Any], start: int = 0) -> int:
    """Return the checksum of the values of dense and sparse arrays; None is skipped."""
    for array in arrays:
        for part in _dense(array):
            start = zlib.crc32(_bytes(part), start)
    return start


def array_text(arrays: Iterable[Any]) -> str:
    """Return the shapes and the checksum of arrays; None is skipped."""
    given = [array for array in arrays if array is not None]
    shapes = " and ".join(" x ".join(map(str, array.shape)) for array in given)
    return f"{shapes} values with checksum {checksum(given):08x}" if given else "None"


def _dense(array: Any) -> list[Any]:
    if issparse(array):
        array = array.tocsr()
        return [array.data, array.indices, array.indptr]
    return [] if array is None else [np.asarray(array)]


def _bytes(array: np.ndarray) -> bytes | memoryview:
    if array.dtype.kind in "OUST":
        values = array.ravel().tolist()
        return "\0".join(values if set(map(type, values)) == {str} else map(str, values)).encode()
    return np.ascontiguousarray(array).view(np.uint8).ravel().data
