"""``quiet`` ignores warnings in a block and restores the filters after the last block."""

import threading
import warnings

import pytest

from ortlearn.quiet import quiet


def shown(category=UserWarning):
    """Return whether a warning is shown."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.warn("hello", category, stacklevel=1)
    return bool(caught)


@pytest.fixture(autouse=True)
def filters():
    """Show all warnings, and check that the filters are restored."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        before = list(warnings.filters)
        yield before
        assert list(warnings.filters) == before


def test_nested_blocks():
    with quiet():
        assert not shown()
        with quiet(), quiet(UserWarning):
            assert not shown()
        assert not shown()
    assert shown()


def test_catch_warnings_that_ends_after_the_block():
    with quiet(UserWarning):
        context = warnings.catch_warnings()
        context.__enter__()
    context.__exit__(None, None, None)
    assert shown()


def test_category():
    with quiet(UserWarning):
        assert not shown()
        assert shown(DeprecationWarning)


def test_block_that_raises():
    with pytest.raises(ZeroDivisionError), quiet():
        raise ZeroDivisionError
    assert shown()


def test_filters_set_in_the_block_are_kept():
    with warnings.catch_warnings():
        with quiet(UserWarning):
            warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            warnings.warn("hello", UserWarning, stacklevel=1)


@pytest.mark.parametrize("first", [0, 1])
def test_overlapping_blocks_in_threads(first):
    """Both blocks begin before one of them ends."""
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
    for index in (first, 1 - first):
        assert not shown()
        end[index].set()
        assert ended[index].wait(60)
    assert shown()
    assert inside == [False, False]
