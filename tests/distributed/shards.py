"""Make dask arrays, and compare trained estimators."""

import dask.array as da
import numpy as np


def cut(array, sizes):
    """Return an array as a dask array with blocks of these sizes."""
    return da.from_array(array, chunks=(tuple(sizes), *((-1,) * (array.ndim - 1))))


def same_bits(one, other):
    """Return whether two estimators have the same weights and losses, bit for bit."""
    first, second = one.get_weights(), other.get_weights()
    assert first.keys() == second.keys()
    return all(np.array_equal(first[name], second[name]) for name in first) and (
        one.train_losses_ == other.train_losses_
    )


def largest_difference(one, other):
    """Return the largest difference of the weights of two estimators."""
    first, second = one.get_weights(), other.get_weights()
    return max(float(np.abs(first[name] - second[name]).max()) for name in first)
