"""Frames in a temporary file, so that a csv file is parsed once."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .messages import check_installed

__all__ = ["FrameCopies"]


class FrameCopies:
    """Frames of which the first ``cells`` cells are in memory (None: all), and others in a temporary file."""

    def __init__(self, cells: int | None):
        self._free = cells
        self._path: str | None = None

    def put(self, frame: Any) -> Callable[[], Iterator[Any]]:
        """Keep a frame, and return the function that reads it."""
        if self._free is None or frame.size <= self._free:
            self._free = None if self._free is None else self._free - frame.size
            return lambda: iter([frame])
        self._free = 0
        check_installed("pyarrow", "cli", "csv files that are read in parts")
        from .arrow_files import write_stream

        if self._path is None:
            handle, self._path = tempfile.mkstemp(suffix=".arrow", prefix="ortlearn-")
            os.close(handle)
            weakref.finalize(self, os.unlink, self._path)
        with open(self._path, "ab") as file:
            start = file.tell()
            write_stream(file, frame)
        return lambda: self._read(start)

    def _read(self, start: int) -> Iterator[Any]:
        """Yield the frame at a place of the file."""
        from .arrow_files import read_stream

        assert self._path is not None
        with open(self._path, "rb") as file:
            file.seek(start)
            frame = read_stream(file)
        for name in frame.columns[frame.dtypes.eq(object)]:  # gaps are nan, as pandas reads them
            frame[name] = frame[name].where(frame[name].notna(), np.nan)
        yield frame
