"""Every sample once, the last short batch kept, in an order of seed, shard and epoch alone."""

import itertools

import numpy as np
import pytest

from ortlearn.training import Device, LoopSettings, batch_sizes, epoch_batches, run_training
from ortlearn.training.batches import epoch_order

KEYS = list(itertools.product([0, 7, 2**63], [0, 1, 5], [0, 1, 2, 100]))


@pytest.mark.parametrize("n_rows", [1, 2, 9, 10, 11, 100])
@pytest.mark.parametrize("batch_size", [1, 3, 10, 1000])
@pytest.mark.parametrize("seed", [0, None])
def test_every_row_once(n_rows, batch_size, seed):
    batches = list(epoch_batches(n_rows, batch_size, seed))
    assert all(rows.dtype == np.int64 for rows in batches)
    assert sorted(np.concatenate(batches)) == list(range(n_rows))
    assert all(len(rows) == min(batch_size, n_rows) for rows in batches[:-1])
    assert list(dict.fromkeys(len(rows) for rows in batches)) == batch_sizes(n_rows, batch_size)


def test_own_order():
    assert [rows.tolist() for rows in epoch_batches(5, 2, None, epoch=3)] == [[0, 1], [2, 3], [4]]


def test_orders_of_other_seeds_shards_and_epochs_differ():
    orders = {tuple(epoch_order(60, seed, epoch, shard)) for seed, shard, epoch in KEYS}
    assert len(orders) == len(KEYS)
    assert tuple(range(60)) not in orders


def test_an_order_depends_on_the_three_numbers_alone():
    first = {key: epoch_order(60, key[0], key[2], key[1]) for key in KEYS}
    np.random.seed(3)  # the global generator does not matter
    for key in reversed(KEYS):
        np.testing.assert_array_equal(epoch_order(60, key[0], key[2], key[1]), first[key])


def test_orders_are_uniform():
    first = [epoch_order(4, seed=1, epoch=epoch) for epoch in range(6000)]
    counts = np.array([np.bincount(position, minlength=4) for position in np.transpose(first)])
    assert abs(counts / 6000 - 0.25).max() < 0.03  # five standard deviations


@pytest.mark.parametrize("shard", [0, 3])
def test_the_loop_takes_the_orders_of_its_epochs(shard, any_step_class, make_task, rows):
    seen: list[np.ndarray] = []
    step = any_step_class(make_task(), Device("cpu"))
    run_epoch = step.run_epoch
    step.run_epoch = lambda order, *rest: (seen.append(order.copy()), run_epoch(order, *rest))[1]
    weights = {"coef": np.array([[0.5], [0.5]], np.float32)}
    run_training(step, rows, weights, LoopSettings(2, 10, first_epoch=4), 8, shard=shard)
    np.testing.assert_array_equal(seen, [epoch_order(len(rows), 8, epoch, shard) for epoch in (4, 5)])


@pytest.mark.parametrize(
    "n_rows, batch_size, sizes", [(10, 5, [5]), (11, 5, [5, 1]), (3, 5, [3]), (5, 5, [5]), (1, 1, [1])]
)
def test_batch_sizes(n_rows, batch_size, sizes):
    assert batch_sizes(n_rows, batch_size) == sizes
