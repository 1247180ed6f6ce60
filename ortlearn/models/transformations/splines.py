"""B-splines of single columns."""

from typing import Any

import numpy as np
from scipy.interpolate import BSpline

from ..base import ModelDefinition
from ..constraints.sets import Rising
from ..parameters import Access
from ..scores import Scores, transformation
from ..writer import ModelWriter

BEFORE, AFTER = [0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]  # pads of the last axis of three


def _extension(model: Any, n_knots: int) -> np.ndarray:
    """Return the matrix of the linear map from base knots to all knots."""
    degree, base = model.bsplines_[0].k, np.eye(n_knots)
    if model.extrapolation == "periodic":
        period = base[-1] - base[0]
        return np.concatenate([base[-degree - 1 : -1] - period, base, base[1 : degree + 1] + period])
    steps = np.arange(1, degree + 1)[:, None]
    below = base[0] - steps[::-1] * (base[1] - base[0])
    return np.concatenate([below, base, base[-1] + steps * (base[-1] - base[-2])])


class BaseKnots(Access):
    """The knots of the base interval, of shape (n_knots, n_features)."""

    def read(self, owner: Any) -> np.ndarray:
        degree = owner.bsplines_[0].k
        knots = np.column_stack([spline.t for spline in owner.bsplines_])
        return knots[degree : len(knots) - degree]

    def write(self, owner: Any, value: np.ndarray) -> None:
        knots = np.ascontiguousarray((_extension(owner, len(value)) @ value).T)
        owner.bsplines_ = [
            BSpline.construct_fast(t, spline.c, spline.k, extrapolate=spline.extrapolate)
            for t, spline in zip(knots, owner.bsplines_, strict=True)
        ]


class SplineTransformerDefinition(ModelDefinition):
    """SplineTransformer: the B-splines of each column; with extrapolation="error", NaN outside."""

    # the recursion of Cox and de Boor (de Boor, C., "A practical guide to splines", Springer 1978, chapters
    # IX and X); outer knots follow the trained knots of the base interval
    continuous = False  # at knots, for degree 0

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        mode, degree = model.extrapolation, model.bsplines_[0].k
        base = BaseKnots().read(model)
        n_knots, n_features = base.shape
        if mode == "linear" and degree < 2 and n_features > 1:
            reason = f"scikit-learn extrapolates degree {degree} from other knots in columns after the first"
            raise op.fail(model, f"{reason}: use extrapolation='constant', or a degree of 2 or more.")
        knots = _knots(op, model, n_knots)
        low, high = (_columns(op, knots, degree + i, 1) for i in (0, n_knots - 1))
        x = op.Unsqueeze(x, [2])
        present = op.ones_where(op.Equal(x, x))
        imputed = getattr(model, "handle_missing", "error") == "zeros"
        inside = x = op.Where(op.IsNaN(x), 0.0, x) if imputed else x
        if mode == "periodic":
            inside = _in_period(op, x, low, high)
        elif mode in ("constant", "linear"):
            inside = op.Min(op.Max(x, low), high)
        splines, slopes = _splines(op, knots, inside, degree, n_knots)
        if mode == "linear" and degree:
            splines = op.Add(splines, op.Mul(op.Sub(x, inside), slopes))
        outside = op.Less(x, low), op.Greater(x, high)
        tied = np.any(base[:1] == base[1:2]) or np.any(base[-1:] == base[-2:-1])
        if mode in ("constant", "linear") and (tied or not degree):
            splines = _nonzero_outside(op, model, splines, outside, n_knots + degree - 1)
        elif mode == "error":
            splines = op.Where(op.Or(*outside), float("nan"), splines)
        return _features(op, model, op.Mul(splines, present) if imputed else splines, n_features)


def _knots(op: ModelWriter, model: Any, n_knots: int) -> str:
    """Append all knots, one row per feature."""
    reason = "" if model.bsplines_[0].k else "splines of degree 0 are step functions with zero gradient"
    options: Any = {"name": "knots", "access": BaseKnots(), "constraint": Rising(), "reason": reason}
    base = op.parameter(model, "bsplines_[*].t", **options)
    return op.Transpose(op.MatMul(_extension(model, n_knots).astype(op.float_dtype), base), perm=[1, 0])


def _nonzero_outside(
    op: ModelWriter, model: Any, splines: str, outside: tuple[str, str], n_splines: int
) -> str:
    """Set splines to zero below and above the knots, except those that scikit-learn extrapolates."""
    degree, index = model.bsplines_[0].k, np.arange(n_splines)
    nonzero = degree + 1 if model.extrapolation == "linear" and degree < 2 else degree
    masks = [mask.astype(op.float_dtype) for mask in (index >= nonzero, index < n_splines - nonzero)]
    zeros = op.Add(*(op.Mul(op.ones_where(o), mask) for o, mask in zip(outside, masks, strict=True)))
    return op.Mul(splines, op.Sub(1.0, zeros))


def _features(op: ModelWriter, model: Any, splines: str, n_features: int) -> Scores:
    """Append the features, from splines of shape (n, n_features, n_splines)."""
    coefficients = model.bsplines_[0].c[:, : None if model.include_bias else -1]
    n_splines, width = coefficients.shape
    if not np.array_equal(coefficients, np.eye(n_splines)):
        splines = op.MatMul(op.Reshape(splines, [-1, n_splines]), coefficients.astype(op.float_dtype))
    return transformation(op, op.Reshape(splines, [-1, n_features * width]), n_features * width)


def _columns(op: ModelWriter, knots: str, first: int, count: int) -> str:
    return op.Slice(knots, [first], [first + count], [1])


def _in_period(op: ModelWriter, x: str, low: str, high: str) -> str:
    """Append values in the first period; zero for a constant column, as in scikit-learn."""
    period = op.Sub(high, low)
    has_period = op.ones_where(op.Greater(period, 0.0))
    n_periods = op.Floor(op.Div(op.Sub(x, low), op.Add(period, op.Sub(1.0, has_period))))
    return op.Mul(op.Sub(x, op.Mul(period, n_periods)), has_period)


def _splines(op: ModelWriter, knots: str, x: str, degree: int, n_knots: int) -> tuple[str, str]:
    """Append splines of shape (n, n_features, n_knots + degree - 1), and their slopes."""
    # Splines of degree 0 are 1 in an interval of the knots t; the first and the last interval are unbounded.
    # From degree p - 1 to p, B_j is (x - t_j) q_j + (t_{j+p+1} - x) q_{j+1}, q_j = B_j / (t_{j+p} - t_j),
    # 0 for equal knots; its slope is p (q_j - q_{j+1}).
    splines = op.ones_where(op.Equal(x, x))
    if n_knots > 2:
        reached = op.ones_where(op.GreaterOrEqual(x, _columns(op, knots, degree + 1, n_knots - 2)))
        splines = op.Sub(op.Pad(reached, BEFORE, 1.0), op.Pad(reached, AFTER))
    quotients = splines
    for power in range(1, degree + 1):
        low, high = (_columns(op, knots, i, n_knots - 2 + power) for i in (degree - power + 1, degree + 1))
        width = op.Sub(high, low)
        distinct = op.ones_where(op.Greater(width, 0.0))
        quotients = op.Mul(splines, op.Div(distinct, op.Add(width, op.Sub(1.0, distinct))))
        rising, falling = op.Mul(op.Sub(x, low), quotients), op.Mul(op.Sub(high, x), quotients)
        splines = op.Add(op.Pad(rising, BEFORE), op.Pad(falling, AFTER))
    return splines, op.Mul(op.Sub(op.Pad(quotients, BEFORE), op.Pad(quotients, AFTER)), float(degree))
