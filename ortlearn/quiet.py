"""Silence for warnings of other packages, which threads can share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

__all__ = ["quiet"]

#: A pattern for every message; no other filter is written like this.
ANY = r"(?:)\A"
_LOCK = Lock()
#: By category: how many blocks run, and the lists of filters that have got one for them.
_RUNNING: dict[type[Warning], tuple[int, list[list[Any]]]] = {}


@contextmanager
def quiet(category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore warnings of a category while a block of code runs, in all threads.

    ``warnings.catch_warnings`` saves and restores all filters: of two threads in such blocks, the one
    that ends last brings back what the other had set, and everything stays ignored. Here the first
    block adds a filter, and the last one removes it.
    """
    with _LOCK:
        count, places = _RUNNING.get(category, (0, []))
        warnings.filterwarnings("ignore", message=ANY, category=category)  # first of all, and once
        item, current = warnings.filters[0], warnings.filters
        if not any(place is current for place in places):
            places.append(current)  # type: ignore[arg-type]
        _RUNNING[category] = count + 1, places
    try:
        yield
    finally:
        _end(category, item)


def _end(category: type[Warning], item: Any) -> None:
    with _LOCK:
        count, places = _RUNNING.pop(category)
        if count > 1:
            _RUNNING[category] = count - 1, places
            return
        for filters in (*places, warnings.filters):  # catch_warnings puts a copy in the place of a list
            while item in filters:
                filters.remove(item)  # type: ignore[attr-defined]
