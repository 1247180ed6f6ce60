"""An epoch has every sample once, in an order that depends only on seed, shard and epoch."""

import itertools

import numpy as np
import pytest

from ortlearn.data.orders import GROUPS, NEIGHBOURS, batch_sizes, epoch_batches, epoch_order
from ortlearn.data.passes import PassesInMemory
from ortlearn.data.samples import Data
from ortlearn.fitting.saved_types import TYPES
from ortlearn.runtime.devices import Device
from ortlearn.training.loop import run_training
from ortlearn.training.settings import LoopSettings
from ortlearn.training.state import TrainingState

KEYS = list(itertools.product([0, 7, 2**63], [0, 1, 5], [0, 1, 2, 100]))


@pytest.mark.parametrize("n_samples", [1, 2, 9, 10, 11, 100])
@pytest.mark.parametrize("batch_size", [1, 3, 10, 1000])
@pytest.mark.parametrize("seed", [0, None])
def test_every_sample_once(n_samples, batch_size, seed):
    batches = list(epoch_batches(n_samples, batch_size, seed))
    assert all(samples.dtype == np.int64 for samples in batches)
    assert sorted(np.concatenate(batches)) == list(range(n_samples))
    assert all(len(samples) == min(batch_size, n_samples) for samples in batches[:-1])
    assert list(dict.fromkeys(len(samples) for samples in batches)) == batch_sizes(n_samples, batch_size)


def test_order_without_seed():
    assert [samples.tolist() for samples in epoch_batches(5, 2, None, epoch=3)] == [[0, 1], [2, 3], [4]]


def test_orders_of_other_seeds_shards_and_epochs_differ():
    orders = {tuple(epoch_order(60, seed, epoch, shard)) for seed, shard, epoch in KEYS}
    assert len(orders) == len(KEYS)
    assert tuple(range(60)) not in orders


def test_order_depends_only_on_seed_shard_and_epoch():
    first = {key: epoch_order(60, key[0], key[2], key[1]) for key in KEYS}
    np.random.seed(3)  # the global generator has no effect
    for key in reversed(KEYS):
        np.testing.assert_array_equal(epoch_order(60, key[0], key[2], key[1]), first[key])


def test_orders_are_uniform():
    first = [epoch_order(4, seed=1, epoch=epoch) for epoch in range(6000)]
    counts = np.array([np.bincount(position, minlength=4) for position in np.transpose(first)])
    assert abs(counts / 6000 - 0.25).max() < 0.03  # five standard deviations


#: Number of samples that are shuffled together, and numbers of samples near it.
TOGETHER = NEIGHBOURS * GROUPS
SIZES = [TOGETHER + 1, TOGETHER + NEIGHBOURS, 2 * TOGETHER, 3 * TOGETHER + 1000, 20_000]


@pytest.mark.parametrize("n_samples", SIZES)
def test_every_sample_once_in_large_data(n_samples):
    orders = [epoch_order(n_samples, 7, epoch, shard) for epoch in range(3) for shard in range(2)]
    for order in orders:
        np.testing.assert_array_equal(np.sort(order), np.arange(n_samples))
    assert len({tuple(order) for order in orders}) == len(orders)
    np.testing.assert_array_equal(epoch_order(n_samples, 7, 2, 1), orders[-1])


@pytest.mark.parametrize("n_samples", SIZES)
def test_first_version_shuffles_all_samples(n_samples):
    expected = np.arange(n_samples)
    philox = np.random.Philox(key=np.array([7, 3], np.uint64), counter=np.array([0, 0, 0, 5], np.uint64))
    np.random.Generator(philox).shuffle(expected)
    np.testing.assert_array_equal(epoch_order(n_samples, 7, 5, 3, version=1), expected)


def test_versions_agree_for_few_samples():
    both = [epoch_order(TOGETHER, 7, 5, 3, version=version) for version in (1, 2, 3)]
    np.testing.assert_array_equal(both[0], both[1])
    np.testing.assert_array_equal(both[0], both[2])


def test_neighbours_are_visited_near_each_other():
    n_samples = 10 * TOGETHER
    place = np.argsort(epoch_order(n_samples, 0))
    assert np.mean(np.abs(np.diff(place)) < TOGETHER) > 0.9
    assert np.mean(np.abs(np.diff(np.argsort(epoch_order(n_samples, 0, version=1)))) < TOGETHER) < 0.25


def test_batches_of_sorted_samples_are_mixed():
    """Batches of samples that are sorted by class have all classes, in their proportions."""
    labels = np.repeat([0, 1], [50_000, 50_000])
    for version, bound in ((1, 1.3), (2, 1.7), (3, 1.7)):  # versions 2 and 3 add the variance of 256 groups
        shares = [labels[samples].mean() for samples in np.array_split(labels_order(labels, version), 390)]
        assert np.std(shares) < bound * np.sqrt(0.25 / 256)
    assert np.std([part.mean() for part in np.array_split(labels, 390)]) > 10 * np.sqrt(0.25 / 256)


def labels_order(labels, version):
    return epoch_order(len(labels), 3, version=version)


def test_second_version_shuffles_each_block():
    """Version 2, as it is in positions that were saved by earlier versions."""
    n_samples = 2 * TOGETHER + 3 * NEIGHBOURS + 5
    philox = np.random.Philox(key=np.array([7, 3], np.uint64), counter=np.array([0, 0, 0, 5], np.uint64))
    rng = np.random.Generator(philox)
    first, n_groups = rng.integers(n_samples), n_samples // NEIGHBOURS
    starts = rng.permutation(n_groups) * NEIGHBOURS
    groups = [np.arange(start, start + NEIGHBOURS) for start in starts]
    expected = np.concatenate([*groups, np.arange(n_groups * NEIGHBOURS, n_samples)])
    expected = (expected + first) % n_samples
    for start in range(0, n_samples, TOGETHER):
        rng.shuffle(expected[start : start + TOGETHER])
    np.testing.assert_array_equal(epoch_order(n_samples, 7, 5, 3, version=2), expected)


def test_positions_differ_between_epochs():
    """The permutation that the blocks of an epoch share is another one in the next epoch."""
    n_samples = 4 * TOGETHER
    offsets = [epoch_order(n_samples, 7, epoch).reshape(4, TOGETHER) for epoch in (0, 1)]
    steps = [np.diff(order % NEIGHBOURS) for order in offsets]
    assert all(np.mean(step[0] == step[1]) > 0.9 for step in steps)
    assert np.mean(steps[0][0] == steps[1][0]) < 0.2


def test_samples_outside_of_groups_differ():
    """Each sample is equally often among the last ones of an epoch."""
    n_samples, n_epochs = TOGETHER + NEIGHBOURS + 5, 400
    last = np.concatenate([epoch_order(n_samples, 1, epoch)[TOGETHER:] for epoch in range(n_epochs)])
    counts = np.bincount(last, minlength=n_samples)
    # binomial with 400 draws of probability 21 / 4117: mean 2.04; 14 or more has a probability of 1e-8
    assert counts.max() < 14


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_resumed_training_keeps_the_version_of_its_orders(version, any_step_class, make_task, samples):
    data = Data(np.resize(samples.X, (2 * TOGETHER, 2)), np.resize(samples.y, (2 * TOGETHER, 1)))
    seen: list[np.ndarray] = []
    step = any_step_class(make_task(), Device("cpu"))
    run_epoch = step.run_epoch
    step.run_epoch = lambda order, *rest: (seen.append(order.copy()), run_epoch(order, *rest))[1]
    weights = {"coef": np.array([[0.5], [0.5]], np.float32)}
    history = [{"epoch": 1, "loss": 1.0, "validation_loss": None, "validation_score": None, "rate": 0.1}]
    state = TrainingState(weights, seed=8, history=history, order_version=version)
    result = run_training(step, data, state, LoopSettings(2, 1000))
    np.testing.assert_array_equal(seen, [epoch_order(len(data), 8, 1, version=version)])
    assert result.order_version == version


def test_positions_without_a_version_have_version_1():
    known = {"objectives": np.zeros(0), "shares": np.zeros(0), "weights": {}, "states": {}}
    assert TYPES["Position"].make(known).order_version == 1
    ((_, order),) = PassesInMemory(Data(np.zeros((5000, 1)), np.zeros(5000)), 4).chunks(0, 0)
    np.testing.assert_array_equal(order, epoch_order(5000, 4, version=3))  # as for new trainings


@pytest.mark.parametrize("shard", [0, 3])
def test_orders_of_the_loop(shard, any_step_class, make_task, samples):
    seen: list[np.ndarray] = []
    step = any_step_class(make_task(), Device("cpu"))
    run_epoch = step.run_epoch
    step.run_epoch = lambda order, *rest: (seen.append(order.copy()), run_epoch(order, *rest))[1]
    weights = {"coef": np.array([[0.5], [0.5]], np.float32)}
    history = [{"epoch": epoch, "loss": 1.0} for epoch in range(1, 5)]
    run_training(
        step, samples, TrainingState(weights, seed=8, history=history), LoopSettings(6, 10), shard=shard
    )
    np.testing.assert_array_equal(seen, [epoch_order(len(samples), 8, epoch, shard) for epoch in (4, 5)])


@pytest.mark.parametrize(
    "n_samples, batch_size, sizes", [(10, 5, [5]), (11, 5, [5, 1]), (3, 5, [3]), (5, 5, [5]), (1, 1, [1])]
)
def test_batch_sizes(n_samples, batch_size, sizes):
    assert batch_sizes(n_samples, batch_size) == sizes
