"""Many fits in one process do not add memory, threads or open files."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from random import Random

from benchmarks.faults.fault import End, Fault
from benchmarks.faults.subjects import KINDS, X, Y, check_same, trainer

__all__ = ["FAULT"]

N_FITS = 500
#: Allowed growth of memory in bytes; a leak of 10 KB per fit exceeds it.
MEMORY = 4 << 20


def _used() -> tuple[int, int, int]:
    """Return memory in bytes, number of threads and number of open files."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return (
        pages * os.sysconf("SC_PAGE_SIZE"),
        len(os.listdir("/proc/self/task")),
        len(os.listdir("/proc/self/fd")),
    )


def _attempt(draw: Random, number: int, folder: Path) -> End:
    expected = [trainer(kind, max_iter=2).fit(X, Y) for kind in KINDS]

    def fit(count):
        for index in range(count):
            found = trainer(KINDS[index % 2], max_iter=2).fit(X, Y)
            check_same(found, expected[index % 2])

    fit(60)
    before = _used()
    fit(N_FITS)
    memory, threads, files = (after - first for after, first in zip(_used(), before, strict=True))
    assert memory < MEMORY and threads <= 0 and files <= 0, (memory, threads, files)
    return End.RIGHT


FAULT = Fault(
    f"{N_FITS} fits in one process: memory grows by less than {MEMORY >> 20} MB, threads and files do not",
    _attempt,
    tries=1,
    seconds=240,
    repeats=N_FITS,
)
