"""Sessions and forked processes.

A forked child has the memory of its parent but not its threads. A session of the parent hangs there when it
waits for a thread, and crashes when it is freed. The child builds new sessions and never frees the others.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from threading import Lock
from typing import Any
from weakref import WeakSet

__all__ = ["PerProcess", "acquire_before_fork", "keep_alive_in_forks"]

_SESSIONS: WeakSet = WeakSet()
_LOCK = Lock()


class PerProcess:
    """A dictionary that is empty in forked processes."""

    def __init__(self) -> None:
        self._found = os.getpid(), {}  # type: tuple[int, dict[Any, Any]]

    @property
    def values(self) -> dict[Any, Any]:
        """The dictionary of this process."""
        process, values = self._found
        if process != os.getpid():
            values = {}
            self._found = os.getpid(), values
        return values


def keep_alive_in_forks(session: Any) -> Any:
    """Register an onnxruntime session so that forked processes do not free it, and return it."""
    with _LOCK:
        _SESSIONS.add(session)
    return session


def acquire_before_fork(lock: Any, in_child: Callable[[], None] = lambda: None) -> None:
    """Acquire a lock before each fork, so that it is not held by a missing thread in the child."""

    def release() -> None:
        lock.release()
        in_child()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=release)


def _leak_sessions() -> None:
    for session in _SESSIONS:
        # A reference that is never released, not even when the process ends.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session._sess))


acquire_before_fork(_LOCK, _leak_sessions)
