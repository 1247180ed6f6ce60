"""Silence for warnings of other packages, in one thread."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from typing import Any

__all__ = ["quiet"]


class _Silence(local):
    """What a filter of ``warnings`` takes for a pattern: matches in threads that are in such a block."""

    depth = 0

    def match(self, text: str) -> bool:
        return self.depth > 0


_LOCK = Lock()
_SILENCES: dict[type[Warning], _Silence] = {}
#: By category: in how many threads a block runs.
_RUNNING: dict[type[Warning], int] = {}


@contextmanager
def quiet(category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore warnings of a category in a block of code.

    ``warnings.catch_warnings`` saves and restores all filters: of two threads in such blocks, the one
    that ends last brings back what the other had set, and everything stays ignored.

    Parameters
    ----------
    category : type, default=Warning
        Class of the warnings.

    Examples
    --------
    >>> import warnings
    >>> from ortlearn.quiet import quiet
    >>> with quiet(UserWarning):
    ...     warnings.warn("not shown")
    """
    with _LOCK:
        silence = _SILENCES.setdefault(category, _Silence())
        _RUNNING[category] = _RUNNING.get(category, 0) + 1
        item: Any = ("ignore", silence, category, None, 0)
        _remove(item)
        warnings.filters.insert(0, item)  # type: ignore[attr-defined]
    silence.depth += 1
    try:
        yield
    finally:
        silence.depth -= 1
        with _LOCK:
            _RUNNING[category] -= 1
            if not _RUNNING[category]:
                _remove(item)


def _remove(item: Any) -> None:
    while item in warnings.filters:
        warnings.filters.remove(item)  # type: ignore[attr-defined]
