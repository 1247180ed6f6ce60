"""Temporary files that also a killed process does not leave behind."""

from __future__ import annotations

import os
import tempfile
import weakref
from functools import partial

__all__ = ["TemporaryFile"]


class TemporaryFile:
    """A new file, which is removed with this object, or by ``close``.

    On Linux, the file has no name in a folder, and its path is that of a descriptor. Elsewhere, a killed
    process leaves it behind.
    """

    def __init__(self) -> None:
        handle, path = tempfile.mkstemp(prefix="ortlearn-")
        opened = f"/proc/{os.getpid()}/fd/{handle}"
        first, last = partial(os.close, handle), partial(os.unlink, path)
        if os.path.exists(opened):
            path, first, last = opened, last, first
        first()
        self.path, self.close = path, weakref.finalize(self, last)
