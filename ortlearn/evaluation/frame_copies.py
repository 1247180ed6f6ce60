"""Frames in a temporary file, so that a csv file is parsed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..data.temporary_files import TemporaryFile
from .messages import check_installed

__all__ = ["FrameCopies"]


class FrameCopies:
    """Frames of which the first ``cells`` cells are in memory (None: all), and others in a temporary file."""

    def __init__(self, cells: int | None):
        self._free = cells
        self._file: TemporaryFile | None = None

    def put(self, frame: Any) -> Callable[[], Iterator[Any]]:
        """Keep a frame, and return the function that reads it."""
        if self._free is None or frame.size <= self._free:
            self._free = None if self._free is None else self._free - frame.size
            return lambda: iter([frame])
        self._free = 0
        check_installed("pyarrow", "cli", "csv files that are read in parts")
        from .arrow_files import write_stream

        if self._file is None:
            self._file = TemporaryFile()
        with open(self._file.path, "ab") as file:
            start = file.tell()
            write_stream(file, frame)
        return lambda: self._read(start)

    def _read(self, start: int) -> Iterator[Any]:
        """Yield the frame at a place of the file."""
        from .arrow_files import read_stream

        assert self._file is not None
        with open(self._file.path, "rb") as file:
            file.seek(start)
            frame = read_stream(file)
        for name in frame.columns[frame.dtypes.eq(object)]:  # gaps are nan, as pandas reads them
            frame[name] = frame[name].where(frame[name].notna(), np.nan)
        yield frame
