"""Open files that must be regular: reading a pipe or a device may wait, or never end."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from ..exceptions import SavedFileError

__all__ = ["file_size", "open_regular"]


def open_regular(path: str | os.PathLike, follow_links: bool = True) -> BinaryIO:
    """Return an open file; raise SavedFileError for anything but a regular file, without waiting for it."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SavedFileError(f"{os.fspath(path)} is not a regular file.")
    return open(descriptor, "rb")


def file_size(file: BinaryIO) -> int:
    """Return the number of bytes of an open file."""
    return os.fstat(file.fileno()).st_size
