"""Cache of sessions, shared by trainings of the same structure in this process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

from .devices import Device
from .forks import acquire_before_fork
from .sessions import make_session

__all__ = ["cached_session", "clear_cache"]

#: Maximum number of graphs.
MAX_GRAPHS = 32

_CACHE: OrderedDict[Hashable, tuple[Any, Any, Any]] = OrderedDict()
_LOCK = Lock()
acquire_before_fork(_LOCK, _CACHE.clear)


def cached_session(
    key: Hashable, device: Device, n_jobs: int | None, build: Callable[[], Any], spins: bool, kept: Any
) -> tuple[Any, Any]:
    """Return a graph and its session, built once for a key.

    ``kept`` are objects that must stay alive as long as the entry, such as those whose id is in the key.
    """
    key = (key, device, n_jobs)
    with _LOCK:
        if key in _CACHE:
            _CACHE.move_to_end(key)
            return _CACHE[key][:2]
    graph = build()
    entry = graph, make_session(graph.model, device, n_jobs, spins=spins), kept
    with _LOCK:  # the first of two threads wins
        found = _CACHE.setdefault(key, entry)
        while len(_CACHE) > MAX_GRAPHS:
            _CACHE.popitem(last=False)
    return found[:2]


def clear_cache() -> None:
    """Remove all sessions."""
    with _LOCK:
        _CACHE.clear()
