"""Ranges of tensors, their scales and zero points: what calibration decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from ..onnx_files.integer_weights import RANGES

__all__ = ["METHODS", "Levels", "activation_levels", "divergence", "fake_quantised", "weight_levels"]

#: Bins of the histogram and levels of the entropy method (Migacz, 8-bit inference with TensorRT, 2017).
BINS, N_LEVELS = 2048, 128
#: Share of the values within the range of the percentile method.
PERCENTILE = 99.99
#: Shares of the whole range that the method of the squared error tries.
SHARES = np.linspace(0.2, 1.0, 81)
#: Most values of a tensor that the entropy and the squared error look at.
MOST_VALUES = 2**16


@dataclass(frozen=True)
class Levels:
    """Scale and zero point of a tensor, or one of each per channel, and the type of its integers."""

    scale: np.ndarray
    zero: np.ndarray
    elem_type: int
    low: int
    high: int


def activation_levels(
    values: np.ndarray, method: str = "minmax", symmetric: bool = False, elem_type: int = TensorProto.INT8
) -> Levels:
    """Return the levels of an activation: ``zero + x / scale``, rounded to integers of a type."""
    low, high = METHODS[method](values, symmetric)
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    first, last = RANGES[elem_type]
    if symmetric:
        first = -last if first < 0 else first
        most = max(-low, high)
        low, high = -most, most
    scale = np.float32((high - low) / (last - first))
    if not scale >= np.finfo(np.float32).tiny:  # a tensor of zeros
        scale, zero = np.float32(1.0), 0
    elif symmetric:
        zero = (first + last + 1) // 2
    else:
        zero = int(np.clip(np.rint(first - low / scale), first, last))
    dtype = np.int8 if first < 0 else np.uint8
    return Levels(np.asarray(scale), np.asarray(zero, dtype), elem_type, *RANGES[elem_type])


def weight_levels(array: np.ndarray, axis: int, last: int = 127, method: str = "minmax") -> Levels:
    """Return levels of a weight from ``-last`` to ``last``, one scale per output channel."""
    rows = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1).astype(np.float64)
    largest = np.abs(rows).max(axis=1, initial=0.0)
    if method == "mse":
        largest = largest * _best_share(rows, largest, last)
    scale = np.where(largest > 0, largest / last, 1.0).astype(np.float32)
    scale[scale < np.finfo(np.float32).tiny] = 1.0
    elem_type = TensorProto.INT8 if last > 7 else TensorProto.INT4
    return Levels(scale, np.zeros(len(scale), np.int8), elem_type, -last, last)


def _best_share(rows: np.ndarray, largest: np.ndarray, last: int) -> np.ndarray:
    """Return the share of the largest magnitude with the lowest squared error, for each row."""
    errors = []
    for share in SHARES:
        scale = np.where(largest > 0, share * largest / last, 1.0)[:, None]
        errors.append(((np.clip(np.rint(rows / scale), -last, last) * scale - rows) ** 2).sum(axis=1))
    return SHARES[np.argmin(errors, axis=0)]


def fake_quantised(values: np.ndarray, low: float, high: float, n_levels: int = 256) -> np.ndarray:
    """Return values rounded to equidistant levels of a range that contains zero."""
    scale = (high - low) / (n_levels - 1)
    if scale <= 0:
        return np.zeros_like(values)
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(values / scale) + zero, 0, n_levels - 1) - zero) * scale


def _minmax(values: np.ndarray, symmetric: bool) -> tuple[float, float]:
    return values.min(), values.max()


def _percentile(values: np.ndarray, symmetric: bool) -> tuple[float, float]:
    """Return the range without the same small share of values at each end."""
    if symmetric:
        most = np.percentile(np.abs(values), PERCENTILE)
        return -most, most
    outside = (100 - PERCENTILE) / 2
    low, high = np.percentile(values, [outside, 100 - outside])
    return low, high


def _mse(values: np.ndarray, symmetric: bool) -> tuple[float, float]:
    """Return the range whose quantised values have the lowest squared error."""
    some = _some(values).astype(np.float64)
    low, high = min(some.min(), 0.0), max(some.max(), 0.0)
    if symmetric:
        low, high = -max(-low, high), max(-low, high)
    errors = [((fake_quantised(some, share * low, share * high) - some) ** 2).sum() for share in SHARES]
    best = SHARES[int(np.argmin(errors))]
    return best * low, best * high


def _entropy(values: np.ndarray, symmetric: bool) -> tuple[float, float]:
    """Return the range with the lowest divergence of the quantised histogram of magnitudes."""
    some = np.abs(values)
    largest = float(some.max())
    if largest == 0:
        return 0.0, 0.0
    counts, edges = np.histogram(some, bins=BINS, range=(0.0, largest))
    ends = range(N_LEVELS, BINS + 1, N_LEVELS // 8)
    best = min(ends, key=lambda end: divergence(counts.astype(np.float64), end))
    most = float(edges[best])
    return max(-most, float(values.min())), min(most, float(values.max()))


def divergence(counts: np.ndarray, end: int) -> float:
    """Return KL(p || q) of a histogram clipped at a bin and the same in few levels; infinite if q is zero."""
    p = counts[:end].copy()
    p[-1] += counts[end:].sum()
    level = np.arange(end) * N_LEVELS // end
    filled = counts[:end] > 0
    sums = np.bincount(level, counts[:end], minlength=N_LEVELS)
    number = np.bincount(level, filled, minlength=N_LEVELS)
    q = np.where(filled, (sums / np.maximum(number, 1))[level], 0.0)
    if not q.sum() or (p[q == 0] > 0).any():
        return np.inf
    used = p > 0
    p, q = p[used] / p.sum(), q[used] / q.sum()
    return float((p * np.log(p / q)).sum())


def _some(values: np.ndarray) -> np.ndarray:
    """Return a limited number of values, equally spaced."""
    return values.ravel()[:: max(1, values.size // MOST_VALUES)]


#: Ranges by method of calibration.
METHODS: dict[str, Callable[[np.ndarray, bool], tuple[float, float]]] = {
    "minmax": _minmax,
    "percentile": _percentile,
    "entropy": _entropy,
    "mse": _mse,
}
