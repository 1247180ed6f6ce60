"""Prefetching: at most one item ahead, errors in order, and an end when the generator is closed."""

import threading

import pytest

from ortlearn.data.prefetch import prefetched


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "ortlearn-reader"]


def test_items_are_computed_in_a_thread_one_ahead():
    made, threads = [], set()
    second = threading.Event()

    def items():
        for number in range(5):
            threads.add(threading.current_thread())
            made.append(number)
            if number == 1:
                second.set()
            yield number

    iterator = prefetched(items)
    assert next(iterator) == 0
    assert second.wait(10)  # the next item is made while nobody asks for it
    assert list(iterator) == [1, 2, 3, 4] and made == [0, 1, 2, 3, 4]
    assert threads and threading.current_thread() not in threads and not readers()


def test_at_most_one_item_waits():
    begun, wanted = [], 3

    def items():
        for number in range(100):
            begun.append(number)
            yield number

    iterator = prefetched(items)
    for _ in range(wanted):
        next(iterator)
    iterator.close()  # waits for the thread
    assert len(begun) <= wanted + 1 and not readers()


def test_an_error_comes_after_the_items_before_it():
    def items():
        yield 1
        raise KeyError("second")

    iterator = prefetched(items)
    assert next(iterator) == 1
    with pytest.raises(KeyError, match="second"):
        next(iterator)
    assert not readers()
