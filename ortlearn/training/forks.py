"""Sessions and forked processes: a child has the memory of its parent, and none of its threads.

A session of the parent hangs where it waits for a thread, and stops the process where it ends one.
The child builds its own, and never frees those of the parent.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from threading import Lock
from typing import Any
from weakref import WeakSet

__all__ = ["PerProcess", "guard", "outlive_forks"]

_SESSIONS: WeakSet = WeakSet()
_LOCK = Lock()


class PerProcess:
    """A dictionary that is empty in each process that did not fill it itself.

    Examples
    --------
    >>> from ortlearn.training.forks import PerProcess
    >>> kept = PerProcess()
    >>> kept.values["key"] = 1
    >>> kept.values
    {'key': 1}
    """

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


def outlive_forks(session: Any) -> Any:
    """Return an onnxruntime session that no forked process will free."""
    with _LOCK:
        _SESSIONS.add(session)
    return session


def guard(lock: Any, in_child: Callable[[], None] = lambda: None) -> None:
    """Let no process be forked while another thread holds a lock, which nobody would release in the child."""

    def release() -> None:
        lock.release()
        in_child()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=release)


def _keep_sessions() -> None:
    for session in _SESSIONS:
        # One reference that nobody gives back, not even at the end of the process.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session._sess))


guard(_LOCK, _keep_sessions)
