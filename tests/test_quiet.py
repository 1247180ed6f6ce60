"""Warnings are ignored in a block, in its thread, and only there, whatever other threads do."""

import threading
import warnings

import pytest

from ortlearn.quiet import quiet


def shown(category=UserWarning):
    """Return whether a warning gets through."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.warn("hello", category, stacklevel=1)
    return bool(caught)


@pytest.fixture(autouse=True)
def filters():
    """Show every warning, and check that the filters stay as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        before = list(warnings.filters)
        yield before
        assert list(warnings.filters) == before


def test_a_block():
    with quiet():
        assert not shown()
        with quiet(), quiet(UserWarning):
            assert not shown()
        assert not shown()
    assert shown()


def test_a_category():
    with quiet(UserWarning):
        assert not shown()
        assert shown(DeprecationWarning)


def test_an_error_ends_it():
    with pytest.raises(ZeroDivisionError), quiet():
        raise ZeroDivisionError
    assert shown()


def test_filters_set_within_stay():
    with warnings.catch_warnings():
        with quiet(UserWarning):
            warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            warnings.warn("hello", UserWarning, stacklevel=1)


@pytest.mark.parametrize("first", [0, 1])
def test_blocks_that_overlap_in_threads(first):
    """One begins, the other begins, the first ends, the other ends; a third thread is in none."""
    begun, end = [threading.Event() for _ in range(2)], [threading.Event() for _ in range(2)]
    ended, inside = [threading.Event() for _ in range(2)], []

    def run(index):
        with quiet():
            begun[index].set()
            end[index].wait(60)
            with warnings.catch_warnings(record=True) as caught:
                warnings.warn("hello", UserWarning, stacklevel=1)
            inside.append(bool(caught))
        ended[index].set()

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(2)]
    for index, thread in enumerate(threads):
        thread.start()
        assert begun[index].wait(60)
        assert shown()
    for index in (first, 1 - first):
        end[index].set()
        assert ended[index].wait(60)
        assert shown()
    assert inside == [False, False]
