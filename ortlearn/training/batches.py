"""Batches: which rows go into which update."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["batch_sizes", "epoch_batches", "epoch_order", "split_batches"]


def epoch_order(n_rows: int, random_state: np.random.RandomState | None) -> np.ndarray:
    """Return row numbers in the order an epoch visits them.

    Parameters
    ----------
    n_rows : int
        Number of rows; every one is visited once.
    random_state : numpy.random.RandomState or None
        Draws the order; None keeps the rows' own.

    Returns
    -------
    ndarray of shape (n_rows,), int64
        Row numbers.
    """
    order = np.arange(n_rows, dtype=np.int64)
    if random_state is not None:
        random_state.shuffle(order)
    return order


def split_batches(order: np.ndarray, batch_size: int) -> Iterator[np.ndarray]:
    """Yield the row numbers of each batch; the last one may be short.

    Parameters
    ----------
    order : ndarray of shape (n_rows,)
        Row numbers.
    batch_size : int
        Rows of a batch.

    Yields
    ------
    ndarray of shape (n,)
        Row numbers.
    """
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def epoch_batches(
    n_rows: int, batch_size: int, random_state: np.random.RandomState | None
) -> Iterator[np.ndarray]:
    """Yield the row numbers of each batch of an epoch; the last one may be short.

    Parameters
    ----------
    n_rows : int
        Number of rows; every one is visited once.
    batch_size : int
        Rows of a batch.
    random_state : numpy.random.RandomState or None
        Draws the order; None keeps the rows' own.

    Yields
    ------
    ndarray of shape (n,), int64
        Row numbers.

    Examples
    --------
    >>> from ortlearn.training.batches import epoch_batches
    >>> [rows.tolist() for rows in epoch_batches(5, 2, None)]
    [[0, 1], [2, 3], [4]]
    """
    return split_batches(epoch_order(n_rows, random_state), batch_size)


def batch_sizes(n_rows: int, batch_size: int) -> list[int]:
    """Return the sizes of batch that an epoch has: the full one, and the last short one if any.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    batch_size : int
        Rows of a full batch.

    Returns
    -------
    list of int
        One size or two.

    Examples
    --------
    >>> from ortlearn.training import batch_sizes
    >>> batch_sizes(10, 4)
    [4, 2]
    """
    full = min(batch_size, n_rows)
    rest = n_rows % full
    return [full, rest] if rest else [full]
