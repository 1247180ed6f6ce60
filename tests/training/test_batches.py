"""Every row once, the last short batch kept, in the order of the seed."""

import numpy as np
import pytest

from ortlearn.training import batch_sizes, epoch_batches


@pytest.mark.parametrize("n_rows", [1, 2, 9, 10, 11, 100])
@pytest.mark.parametrize("batch_size", [1, 3, 10, 1000])
@pytest.mark.parametrize("shuffled", [False, True])
def test_every_row_once(n_rows, batch_size, shuffled):
    state = np.random.RandomState(0) if shuffled else None
    batches = list(epoch_batches(n_rows, batch_size, state))
    assert all(rows.dtype == np.int64 for rows in batches)
    assert sorted(np.concatenate(batches)) == list(range(n_rows))
    assert all(len(rows) == min(batch_size, n_rows) for rows in batches[:-1])
    assert list(dict.fromkeys(len(rows) for rows in batches)) == batch_sizes(n_rows, batch_size)


def test_order():
    assert [rows.tolist() for rows in epoch_batches(5, 2, None)] == [[0, 1], [2, 3], [4]]
    state = np.random.RandomState(7)
    first, second = (np.concatenate(list(epoch_batches(50, 8, state))) for _ in range(2))
    again = np.concatenate(list(epoch_batches(50, 8, np.random.RandomState(7))))
    assert (first != np.arange(50)).any() and (first != second).any()
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    "n_rows, batch_size, sizes", [(10, 5, [5]), (11, 5, [5, 1]), (3, 5, [3]), (5, 5, [5]), (1, 1, [1])]
)
def test_batch_sizes(n_rows, batch_size, sizes):
    assert batch_sizes(n_rows, batch_size) == sizes
