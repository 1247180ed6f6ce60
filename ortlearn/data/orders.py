"""Batches and the order of samples."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

__all__ = [
    "ORDER_VERSION",
    "batch_weights",
    "batch_sizes",
    "epoch_batches",
    "epoch_order",
    "split_batches",
]

#: Version of the sample orders of new trainings.
ORDER_VERSION = 3
#: Size of the groups of neighbours since version 2, and number of groups that are shuffled together.
NEIGHBOURS, GROUPS = 16, 256
#: Generator of each thread, and the buffer of a generator that has drawn nothing.
_THREAD, _EMPTY = threading.local(), np.zeros(4, np.uint64)


def epoch_order(
    n_samples: int,
    seed: int | None,
    epoch: int = 0,
    shard: int = 0,
    version: int = ORDER_VERSION,
    dtype: type[np.signedinteger] = np.int64,
) -> np.ndarray:
    """Return the indices of the samples in the order of an epoch.

    The order depends only on the arguments; there is no generator state. Version 1 shuffles all samples.
    Versions 2 and 3 do so up to 4,096 samples; beyond, they draw groups of 16 neighbours and shuffle the
    samples of 256 groups at a time, for locality of memory access. Version 3 draws one permutation of 4,096
    positions for all of them, version 2 a permutation each. A dtype of 32 bits is sufficient for fewer than
    2**30 samples.
    """
    if seed is None:
        return np.arange(n_samples, dtype=dtype)
    rng = _generator(seed, shard, epoch)
    if version > 1 and n_samples > NEIGHBOURS * GROUPS:
        return _mixed(n_samples, rng, dtype, version)
    order = np.arange(n_samples, dtype=dtype)
    _shuffle(rng, order)
    return order


def _generator(seed: int, shard: int, epoch: int) -> np.random.Generator:
    """Return the generator of an epoch, one object per thread."""
    # A new Philox reads entropy from the system, even with a key: 16 us instead of 2.
    if not hasattr(_THREAD, "generator"):
        _THREAD.generator = np.random.Generator(np.random.Philox(0))
    # Philox is a bijection of its counter: epochs with the same key never share random numbers.
    key, counter = np.array([seed, shard], np.uint64), np.array([0, 0, 0, epoch], np.uint64)
    _THREAD.generator.bit_generator.state = {
        "bit_generator": "Philox",
        "state": {"counter": counter, "key": key},
        "buffer": _EMPTY,
        "buffer_pos": len(_EMPTY),
        "has_uint32": 0,
        "uinteger": 0,
    }
    return _THREAD.generator


def _shuffle(rng: np.random.Generator, order: np.ndarray) -> None:
    """Shuffle indices in place, as int64, since NumPy takes 1.7 times as long for int32."""
    wide = order.astype(np.int64, copy=False)
    rng.shuffle(wide)
    if wide is not order:
        order[:] = wide


def _mixed(
    n_samples: int, rng: np.random.Generator, dtype: type[np.signedinteger], version: int
) -> np.ndarray:
    """Return a shuffled order by version 2 or 3."""
    # The start of the first group is random: samples in no whole group differ between epochs.
    first, n_groups = rng.integers(n_samples), n_samples // NEIGHBOURS
    starts = ((NEIGHBOURS * rng.permutation(n_groups) + first) % n_samples).astype(dtype, copy=False)
    order = np.arange(first, first + n_samples, dtype=dtype)
    n_mixed = n_groups // GROUPS * GROUPS
    blocks, rest = np.split(order, [NEIGHBOURS * n_mixed])
    places = np.arange(NEIGHBOURS * GROUPS) if version == 2 else rng.permutation(NEIGHBOURS * GROUPS)
    blocks = blocks.reshape(-1, NEIGHBOURS * GROUPS)
    # In this mode, NumPy writes to the result directly.
    np.take(starts[:n_mixed].reshape(-1, GROUPS), places // NEIGHBOURS, 1, out=blocks, mode="clip")
    blocks += places % NEIGHBOURS
    others = starts[n_mixed:, np.newaxis] + np.arange(NEIGHBOURS)
    rest[: others.size] = others.ravel()
    order[order >= n_samples] -= n_samples
    for part in split_batches(order if version == 2 else rest, NEIGHBOURS * GROUPS):
        _shuffle(rng, part)
    return order


def split_batches(order: np.ndarray, batch_size: int) -> Iterator[np.ndarray]:
    """Yield the sample indices of each batch; the last batch may be smaller."""
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def epoch_batches(
    n_samples: int, batch_size: int, seed: int | None, epoch: int = 0, shard: int = 0
) -> Iterator[np.ndarray]:
    """Yield the sample indices of each batch of an epoch; the last batch may be smaller."""
    return split_batches(epoch_order(n_samples, seed, epoch, shard), batch_size)


def batch_sizes(n_samples: int, batch_size: int) -> list[int]:
    """Return the batch sizes of an epoch: that of full batches and, if smaller, that of the last one."""
    full = min(batch_size, n_samples)
    rest = n_samples % full
    return [full, rest] if rest else [full]


def batch_weights(order: np.ndarray, batch_size: int, sample_weight: np.ndarray | None) -> np.ndarray:
    """Return the weight of each batch in the mean loss of an epoch: number or weight of its samples."""
    starts = np.arange(0, len(order), batch_size)
    if sample_weight is None:
        return np.diff(starts, append=len(order))
    return np.add.reduceat(sample_weight[order], starts, dtype=np.float64)
