"""B-splines of single columns."""

from typing import Any

import numpy as np
from scipy.interpolate import BSpline

from .base import ModelDefinition
from .constraints.sets import Rising
from .parameters import Access
from .scores import Scores, transformation
from .writer import ModelWriter

BEFORE, AFTER = [0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]  # pads of the last axis of three


def _beyond(model: Any, n_knots: int) -> np.ndarray:
    """Return the matrix of the linear map from base knots to all knots."""
    degree, base = model.bsplines_[0].k, np.eye(n_knots)
    if model.extrapolation == "periodic":
        period = base[-1] - base[0]
        return np.concatenate([base[-degree - 1 : -1] - period, base, base[1 : degree + 1] + period])
    steps = np.arange(1, degree + 1)[:, None]
    below = base[0] - steps[::-1] * (base[1] - base[0])
    return np.concatenate([below, base, base[-1] + steps * (base[-1] - base[-2])])


class _BaseKnots(Access):
    """The knots of the base interval, of shape (n_knots, n_features)."""

    def read(self, owner: Any) -> np.ndarray:
        degree = owner.bsplines_[0].k
        knots = np.column_stack([spline.t for spline in owner.bsplines_])
        return knots[degree : len(knots) - degree]

    def write(self, owner: Any, value: np.ndarray) -> None:
        knots = np.ascontiguousarray((_beyond(owner, len(value)) @ value).T)
        owner.bsplines_ = [
            BSpline.construct_fast(own, spline.c, spline.k, extrapolate=spline.extrapolate)
            for own, spline in zip(knots, owner.bsplines_, strict=True)
        ]


class SplineTransformerDefinition(ModelDefinition):
    """SplineTransformer: the B-splines of each column; with extrapolation="error", NaN outside."""

    # the recursion of Cox and de Boor (de Boor, C., "A practical guide to splines", Springer 1978, chapters
    # IX and X); outer knots follow the trained knots of the base interval
    continuous = False  # of degree 0, at knots

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        mode, degree, access = model.extrapolation, model.bsplines_[0].k, _BaseKnots()
        base = access.read(model)
        n_knots, n_features = base.shape
        if mode == "linear" and degree < 2 and n_features > 1:
            reason = f"scikit-learn continues degree {degree} from other knots in each column after the first"
            raise op.fail(model, f"{reason}: use extrapolation='constant', or a degree of 2 or more.")
        reason = "" if degree else "splines of degree 0 change in steps at the knots: no gradient passes"
        options: Any = {"name": "knots", "access": access, "constraint": Rising(), "reason": reason}
        knots = op.parameter(model, "bsplines_[*].t", **options)
        table = op.Transpose(op.MatMul(_beyond(model, n_knots).astype(op.float_dtype), knots), perm=[1, 0])
        low, high = (_columns(op, table, degree + i, 1) for i in (0, n_knots - 1))
        x = op.Unsqueeze(x, [2])
        present = op.ones_where(op.Equal(x, x))
        if getattr(model, "handle_missing", "error") == "zeros":
            x = op.Where(op.IsNaN(x), 0.0, x)
        inside = x
        if mode == "periodic":
            inside = _in_period(op, x, low, high)
        elif mode in ("constant", "linear"):
            inside = op.Min(op.Max(x, low), high)
        splines, slopes = _splines(op, table, inside, degree, n_knots)
        if mode == "linear" and degree:
            splines = op.Add(splines, op.Mul(op.Sub(x, inside), slopes))
        outside = op.Less(x, low), op.Greater(x, high)
        tied = np.any(base[:1] == base[1:2]) or np.any(base[-1:] == base[-2:-1])
        if mode in ("constant", "linear") and (tied or not degree):
            # beyond each end, scikit-learn has nonzero values for this number of splines
            kept = degree + 1 if mode == "linear" and degree < 2 else degree
            count = np.arange(n_knots + degree - 1)
            cut = [own.astype(op.float_dtype) for own in (count >= kept, count < len(count) - kept)]
            zeros = op.Add(*(op.Mul(op.ones_where(o), c) for o, c in zip(outside, cut, strict=True)))
            splines = op.Mul(splines, op.Sub(1.0, zeros))
        elif mode == "error":
            splines = op.Where(op.Or(*outside), float("nan"), splines)
        if getattr(model, "handle_missing", "error") == "zeros":
            splines = op.Mul(splines, present)
        return self._features(op, model, splines, n_features)

    def _features(self, op: ModelWriter, model: Any, splines: str, n_features: int) -> Scores:
        """Append the features, from splines of shape (n, n_features, n_splines)."""
        coefficients = model.bsplines_[0].c[:, : None if model.include_bias else -1]
        n_splines, width = coefficients.shape
        if not np.array_equal(coefficients, np.eye(n_splines)):
            splines = op.MatMul(op.Reshape(splines, [-1, n_splines]), coefficients.astype(op.float_dtype))
        return transformation(op, op.Reshape(splines, [-1, n_features * width]), n_features * width)


def _columns(op: ModelWriter, table: str, first: int, count: int) -> str:
    return op.Slice(table, [first], [first + count], [1])


def _in_period(op: ModelWriter, x: str, low: str, high: str) -> str:
    """Append values of the first period; zero for a constant column, as scikit-learn."""
    period = op.Sub(high, low)
    has_period = op.ones_where(op.Greater(period, 0.0))
    number = op.Floor(op.Div(op.Sub(x, low), op.Add(period, op.Sub(1.0, has_period))))
    return op.Mul(op.Sub(x, op.Mul(period, number)), has_period)


def _splines(op: ModelWriter, table: str, x: str, degree: int, n_knots: int) -> tuple[str, str]:
    """Append splines of shape (n, n_features, n_knots + degree - 1), and their slopes."""
    # Rows of the table are the knots t of a column. Splines of degree 0 are 1 in their interval, of which the
    # first and the last are unbounded. From degree p - 1 to p, B_j becomes (x - t_j) q_j + (t_{j+p+1} - x)
    # q_{j+1}, q_j = B_j / (t_{j+p} - t_j), 0 for equal knots; its slope is p (q_j - q_{j+1}).
    splines = op.ones_where(op.Equal(x, x))
    if n_knots > 2:
        reached = op.ones_where(op.GreaterOrEqual(x, _columns(op, table, degree + 1, n_knots - 2)))
        splines = op.Sub(op.Pad(reached, BEFORE, 1.0), op.Pad(reached, AFTER))
    shares = splines
    for power in range(1, degree + 1):
        low, high = (_columns(op, table, i, n_knots - 2 + power) for i in (degree - power + 1, degree + 1))
        width = op.Sub(high, low)
        apart = op.ones_where(op.Greater(width, 0.0))
        shares = op.Mul(splines, op.Div(apart, op.Add(width, op.Sub(1.0, apart))))
        rising, falling = op.Mul(op.Sub(x, low), shares), op.Mul(op.Sub(high, x), shares)
        splines = op.Add(op.Pad(rising, BEFORE), op.Pad(falling, AFTER))
    return splines, op.Mul(op.Sub(op.Pad(shares, BEFORE), op.Pad(shares, AFTER)), float(degree))
