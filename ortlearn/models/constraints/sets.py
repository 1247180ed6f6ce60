"""Constraints to probability simplexes, log-probabilities, increasing tables, triangular matrices."""

from dataclasses import dataclass

import numpy as np

from ...graphs import GraphBuilder
from .base import Constraint
from .signs import Positive, absolute

EDGE = 1e-6  # smallest distance of a parameter from the boundary of its set, for finite free values
TINY = 1e-30  # added to values before they are normalised, for equal shares if all are zero


def _shape(op: GraphBuilder, name: str) -> tuple[int, ...]:
    """Return the shape of an initializer."""
    return tuple(size for size in op.shape(name) or () if isinstance(size, int))


def _is_on_simplex(values: np.ndarray, axis: int | None) -> bool:
    """Return whether values are nonnegative and sum to one along an axis."""
    sums = values.sum(axis=axis, dtype=np.float64)
    return bool(np.isfinite(values).all() and (values >= 0).all() and np.allclose(sums, 1, atol=1e-4))


@dataclass(frozen=True)
class Simplex(Constraint):
    """Weights that sum to one, along an axis if given, or their logarithms: ``exp(t) / sum exp(t)``."""

    axis: int | None = None
    logarithm: bool = False
    text = "kept on the simplex"

    def holds(self, values: np.ndarray) -> bool:
        weights = np.exp(values.astype(np.float64)) if self.logarithm else values
        return _is_on_simplex(weights, self.axis) and bool(np.isfinite(values).all())

    def free(self, values: np.ndarray) -> np.ndarray:
        return values.copy() if self.logarithm else np.log(np.maximum(values, EDGE**3))

    def values(self, free: np.ndarray) -> np.ndarray:
        shifted = free - free.max(axis=self.axis, keepdims=True)
        logarithms = shifted - np.log(np.exp(shifted).sum(axis=self.axis, keepdims=True))
        return logarithms if self.logarithm else np.exp(logarithms)

    def write(self, op: GraphBuilder, free: str) -> str:
        # not every runtime has a float64 gradient kernel of Softmax
        exponentials = op.Exp(free)
        axes = [] if self.axis is None else [[self.axis]]
        total = op.ReduceSum(exponentials, *axes, keepdims=1)
        return op.Sub(free, op.Log(total)) if self.logarithm else op.Div(exponentials, total)


@dataclass(frozen=True)
class ClosedSimplex(Constraint):
    """Values that sum to one along the last axis and may be exactly zero: ``|t| / sum |t|``."""

    sizes: tuple[int, ...]  # number of shares of each output; the last axis is padded with zeros
    scale: float = 1.0  # initial sum of the free values; steps are larger if it is smaller
    grows: bool = True  # whether shares of zero have a gradient and can increase
    text = "kept on the simplex"
    projected = True
    by_row = True

    def _mask(self) -> np.ndarray | None:
        """Return 1 for shares and 0 for padding, or None without padding."""
        mask = np.arange(max(self.sizes)) < np.array(self.sizes)[:, None]
        return None if mask.all() else mask.astype(np.float64)

    def holds(self, values: np.ndarray) -> bool:
        return _is_on_simplex(values, -1)

    def free(self, values: np.ndarray) -> np.ndarray:
        return values * self.scale

    def values(self, free: np.ndarray) -> np.ndarray:
        mask = self._mask()
        free = free.astype(np.float64)
        sizes = (np.abs(free) if self.grows else np.maximum(free, 0)) + TINY
        sizes = sizes if mask is None else sizes * mask
        return sizes / sizes.sum(axis=-1, keepdims=True)

    def write(self, op: GraphBuilder, free: str) -> str:
        mask = self._mask()
        sizes = op.Add(absolute(op, free) if self.grows else op.Relu(free), TINY)
        sizes = sizes if mask is None else op.Mul(sizes, mask.astype(op.float_dtype))
        return op.Div(sizes, op.ReduceSum(sizes, [-1], keepdims=1))


@dataclass(frozen=True)
class LogProbability(Constraint):
    """Logarithms of probabilities that need not sum to one: ``-log(1 + exp(-t))``."""

    text = "kept below 0, the logarithm of a probability"

    def holds(self, values: np.ndarray) -> bool:
        return bool(np.isfinite(values).all() and (values <= 0).all())

    def free(self, values: np.ndarray) -> np.ndarray:
        values = np.minimum(values.astype(np.float64), -EDGE)
        return values - np.log(-np.expm1(values))

    def values(self, free: np.ndarray) -> np.ndarray:
        return -np.logaddexp(np.zeros_like(free), -free)

    def write(self, op: GraphBuilder, free: str) -> str:
        return op.Neg(op.Log(op.Add(op.Exp(op.Neg(free)), 1.0)))


@dataclass(frozen=True)
class Increasing(Constraint):
    """Increasing values between two bounds: scaled cumulative sums of ``|t| / sum |t|``."""

    low: float = 0.0
    high: float = 1.0
    projected = True

    @property
    def text(self) -> str:  # type: ignore[override]
        return f"kept increasing, from {self.low:g} to {self.high:g}"

    def holds(self, values: np.ndarray) -> bool:
        flat = values.ravel()
        return bool((np.diff(flat) >= 0).all() and flat[0] >= self.low and flat[-1] <= self.high)

    def free(self, values: np.ndarray) -> np.ndarray:
        flat = values.ravel().astype(np.float64)
        return np.diff(flat, prepend=self.low, append=self.high) / (self.high - self.low)

    def values(self, free: np.ndarray) -> np.ndarray:
        sizes = np.abs(free.astype(np.float64))
        return self.low + (self.high - self.low) * np.cumsum(sizes / (sizes.sum() + TINY))[:-1]

    def write(self, op: GraphBuilder, free: str) -> str:
        sizes = absolute(op, free)
        shares = op.Reshape(op.Div(sizes, op.Add(op.ReduceSum(sizes, keepdims=1), TINY)), [-1, 1])
        # a matrix product, as not all backends have a gradient of CumSum
        triangle = (self.high - self.low) * np.tri(_shape(op, free)[0])[:-1]
        table = op.Reshape(op.MatMul(triangle.astype(op.float_dtype), shares), [-1])
        return op.Add(table, self.low) if self.low else table


@dataclass(frozen=True)
class Rising(Constraint):
    """Increasing columns with differences ``exp(t)``, with an optional lower bound."""

    low: float | None = None
    text = "kept rising"

    def holds(self, values: np.ndarray) -> bool:
        above = self.low is None or values[0].min() >= self.low
        return bool(above and (np.diff(values, axis=0) >= 0).all())

    def free(self, values: np.ndarray) -> np.ndarray:
        values = values.astype(np.float64)
        steps = np.concatenate([values[:1] - (self.low or 0.0), np.diff(values, axis=0)])
        least = EDGE / len(values) * np.maximum(np.ptp(values, axis=0), EDGE)
        begin = 1 if self.low is None else 0
        steps[begin:] = np.log(np.maximum(steps[begin:], least))
        return steps

    def values(self, free: np.ndarray) -> np.ndarray:
        if self.low is not None:
            return self.low + np.cumsum(np.exp(free), axis=0)
        return np.cumsum(np.concatenate([free[:1], np.exp(free[1:])]), axis=0)

    def write(self, op: GraphBuilder, free: str) -> str:
        n, *others = _shape(op, free)
        triangle = np.tri(n, dtype=op.float_dtype)
        if self.low is not None:
            return op.Add(op.MatMul(triangle, op.Exp(free)), self.low)
        later = np.ones((n, *(1 for _ in others)), dtype=op.float_dtype)
        later[0] = 0
        steps = op.Mul(op.Exp(op.Mul(free, later)), later)
        return op.MatMul(triangle, op.Add(op.Mul(free, 1 - later), steps))


@dataclass(frozen=True)
class Triangular(Constraint):
    """Upper triangular matrices with a positive diagonal, with an optional upper bound of the diagonal."""

    high: float | None = None
    text = "kept triangular, the diagonal positive"

    @property
    def _diagonal(self) -> Positive:
        return Positive(high=self.high)

    def holds(self, values: np.ndarray) -> bool:
        diagonal = np.diagonal(values, axis1=-2, axis2=-1)
        return bool((np.tril(values, -1) == 0).all()) and self._diagonal.holds(diagonal)

    def free(self, values: np.ndarray) -> np.ndarray:
        identity = np.eye(values.shape[-1], dtype=values.dtype)
        inside = 1 if self.high is None else self.high / 2  # any valid value for off-diagonal elements
        return np.triu(values, 1) + identity * self._diagonal.free(np.where(identity > 0, values, inside))

    def values(self, free: np.ndarray) -> np.ndarray:
        identity = np.eye(free.shape[-1], dtype=free.dtype)
        return np.triu(free, 1) + identity * self._diagonal.values(identity * free)

    def write(self, op: GraphBuilder, free: str) -> str:
        identity = np.eye(_shape(op, free)[-1], dtype=op.float_dtype)
        # exponentials of the diagonal only, as others could overflow
        diagonal = op.Mul(self._diagonal.write(op, op.Mul(free, identity)), identity)
        return op.Add(op.Mul(free, np.triu(np.ones_like(identity), 1)), diagonal)
