"""Prefetching: a thread computes the next item while the current one is processed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from threading import Semaphore, Thread
from typing import Any, TypeVar

__all__ = ["prefetched"]

Item = TypeVar("Item")


def prefetched(make: Callable[[], Iterator[Item]]) -> Generator[Item, None, None]:
    """Yield the items of an iterator, which a thread computes one item ahead.

    At most two items exist at a time: the last one yielded, and the next one. Closing the generator waits for
    the item that is being computed.
    """
    wanted, made = Semaphore(1), Semaphore(0)
    slot: list[tuple[str, Any]] = []
    closed = False

    def work() -> None:
        wanted.acquire()
        try:
            for item in make():
                slot.append(("item", item))
                del item  # only the caller keeps it
                made.release()
                wanted.acquire()
                if closed:
                    return
            slot.append(("end", None))
        except BaseException as error:
            slot.append(("error", error))
        made.release()

    thread = Thread(target=work, name="ortlearn-reader", daemon=True)
    thread.start()
    try:
        while True:
            made.acquire()
            kind, value = slot.pop()
            if kind == "error":
                raise value
            if kind == "end":
                return
            wanted.release()
            yield value
            del value
    finally:
        closed = True
        wanted.release()
        thread.join()
