"""Memory of this machine."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

__all__ = ["memory_bytes"]

#: Bytes if the memory of the machine is unknown.
UNKNOWN = 2**37
#: Files with the limit of a container, in versions 2 and 1 of control groups.
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@cache
def memory_bytes() -> int:
    """Return the memory of this machine, or of its container, in bytes."""
    found = [UNKNOWN]
    with suppress(AttributeError, ValueError, OSError):  # Windows
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in LIMITS:
        with suppress(ValueError, OSError):  # "max", no such file
            found.append(int(Path(path).read_text()))
    return min(found)
