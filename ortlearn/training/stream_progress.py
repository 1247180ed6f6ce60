"""Progress lines of estimators across calls of ``partial_fit``."""

from __future__ import annotations

import shutil
import sys
import time
import weakref
from dataclasses import dataclass
from threading import RLock
from typing import Any

from ..runtime.forks import acquire_before_fork

__all__ = ["MeasuredText", "close_stream", "interrupt_line", "show_stream"]

#: Entries of the record of an epoch to show, and their labels.
SHOWN = {"loss": "loss", "validation_loss": "val", "rate": "rate"}
#: Minimum seconds between two drawings of the line.
PERIOD = 0.1
#: Carriage return and control sequence to erase a line.
ERASED = "\r\x1b[K"

_LOCK = RLock()


class MeasuredText:
    """Text of the last measured values; a validation is shown until the next one."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def of(self, record: dict) -> str:
        """Return the text after an epoch."""
        measured = {name: record[key] for key, name in SHOWN.items() if record.get(key) is not None}
        self._last.update(measured)
        return " ".join(f"{name} {self._last[name]:.3g}" for name in SHOWN.values() if name in self._last)


@dataclass
class _Stream:
    """Progress of one estimator."""

    description: str
    measured: MeasuredText
    since: float
    finalizer: Any
    epoch: int = 0
    text: str = ""

    def line(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self.since), 60)
        return f"{self.description} epoch {self.epoch} {self.text} {minutes}:{seconds:02}"


class _StreamLine:
    """Open streams, drawn in one line of a terminal; otherwise each is written when it is closed."""

    def __init__(self) -> None:
        self._streams: dict[int, _Stream] = {}
        self._drawn = 0.0
        self._unfinished = False

    def show(self, owner: Any, description: str, record: dict) -> None:
        key = id(owner)
        if key not in self._streams:
            # Another object may get the same id once the estimator is deleted.
            finalizer = weakref.finalize(owner, close_key, key)
            self._streams[key] = _Stream(description, MeasuredText(), time.monotonic(), finalizer)
        stream = self._streams[key]
        stream.epoch, stream.text = record["epoch"], stream.measured.of(record)
        if _is_interactive() and time.monotonic() - self._drawn >= PERIOD:
            self._draw()

    def close(self, key: int) -> None:
        stream = self._streams.pop(key, None)
        if stream is None:
            return
        stream.finalizer.detach()
        _write((ERASED if self._unfinished else "") + stream.line() + "\n")
        self._unfinished = False
        if self._streams and _is_interactive():
            self._draw()

    def interrupt(self) -> None:
        if self._unfinished:
            _write("\n")
            self._unfinished = False

    def forget(self) -> None:
        """Remove all streams, which belong to the parent of a forked process."""
        for stream in self._streams.values():
            stream.finalizer.detach()
        self._streams, self._unfinished = {}, False

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        self._unfinished = True
        line = " | ".join(stream.line() for stream in list(self._streams.values()))
        width = shutil.get_terminal_size().columns - 1  # a wrapped line could not be erased
        _write(ERASED + line[:width])


_STREAMS = _StreamLine()
acquire_before_fork(_LOCK, lambda: _STREAMS.forget())


def show_stream(owner: Any, description: str, record: dict) -> None:
    """Show the last epoch of a stream."""
    with _LOCK:
        _STREAMS.show(owner, description, record)


def close_stream(owner: Any) -> None:
    """End the line of an estimator, if it has one."""
    close_key(id(owner))


def close_key(key: int) -> None:
    """End the line of the estimator with this id, which may be deleted."""
    with _LOCK:
        _STREAMS.close(key)


def interrupt_line() -> None:
    """Write a line break after the drawn line, before other output; streams stay open."""
    with _LOCK:
        _STREAMS.interrupt()


def _is_interactive() -> bool:
    """Return whether standard output is a terminal or notebook, which supports carriage returns."""
    stream = sys.stdout
    if stream is None or hasattr(stream, "rich_proxied_file"):  # a live display of rich is active
        return False
    try:
        return type(stream).__module__.startswith("ipykernel") or stream.isatty()
    except (AttributeError, ValueError):  # not a file, or closed
        return False


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):  # standard output is missing or closed
        pass
