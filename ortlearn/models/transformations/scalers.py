"""Scalers and quantile transformers."""

from typing import Any

import numpy as np
from onnx import TensorProto

from ..base import ModelDefinition
from ..constraints.sets import Rising
from ..constraints.signs import Positive
from ..formulas.special_functions import erf, polynomial
from ..scores import Scores, transformation
from ..writer import ModelWriter


def _inverse_scaled(op: ModelWriter, model: Any, y: str, scale: Any, center: Any) -> str:
    """Append ``y * scale + center``, each of them optional."""
    values = [np.ravel(value) for value in (scale, center) if value is not None]
    if values and np.abs(np.concatenate(values)).max() > np.finfo(op.float_dtype).max:
        raise op.fail(model, f"its inverse overflows {op.float_dtype}: scale y, or set dtype='float64'.")
    y = y if scale is None else op.Mul(y, np.asarray(scale, dtype=op.float_dtype))
    return y if center is None else op.Add(y, np.asarray(center, dtype=op.float_dtype))


class ScalerDefinition(ModelDefinition):
    """StandardScaler, RobustScaler and MaxAbsScaler: ``(x - center) / scale_``, each of them optional."""

    exact = True
    keeps_missing = True

    def _center(self, model: Any) -> tuple[str, Any]:
        """Return the name and the value of the subtracted attribute, None if nothing is subtracted."""
        name = "center_" if hasattr(model, "center_") else "mean_"
        return name, getattr(model, name, None) if getattr(model, "with_mean", True) else None

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        name, center = self._center(model)
        if center is not None:
            x = op.Sub(x, op.parameter(model, name, role="intercept"))
        if model.scale_ is not None:
            scale, centered = op.parameter(model, "scale_", role="scale", constraint=Positive()), x
            x = op.Div(x, scale)
            op.quotients[x] = centered, scale
        return transformation(op, x, model.n_features_in_)

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        return _inverse_scaled(op, model, y, model.scale_, self._center(model)[1])

    def finish(self, model: Any) -> None:
        if hasattr(model, "var_") and model.scale_ is not None:
            model.var_ = model.scale_**2
        if hasattr(model, "max_abs_"):
            model.max_abs_ = model.scale_.copy()


class MinMaxScalerDefinition(ModelDefinition):
    """MinMaxScaler: ``x * scale_ + min_``, clipped with ``clip=True``."""

    exact = True
    keeps_missing = True

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        x = op.Mul(x, op.parameter(model, "scale_", role="scale", constraint=Positive()))
        x = op.Add(x, op.parameter(model, "min_", role="intercept"))
        if model.clip:
            low, high = map(float, model.feature_range)
            x = op.Max(op.Min(x, high), low)
        return transformation(op, x, model.n_features_in_)

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        return _inverse_scaled(op, model, y, 1.0 / model.scale_, -model.min_ / model.scale_)


#: Tolerance for the first and the last quantile, and smallest probability, with a normal distribution, as in
#: ``sklearn.preprocessing._data``.
BOUNDS_THRESHOLD = 1e-7
#: Coefficients of rational functions for the quantiles of the normal distribution: numerator and denominator,
#: constant terms first. CENTRE is in ``0.180625 - q^2`` for |q| = |p - 1/2| <= 0.425, TAIL in
#: ``sqrt(-log p) - 1.6`` for p from 1.4e-11 to 0.075. The relative error is about 1e-16 (PPND16 of Wichura,
#: M. J., "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37, 1988).
# fmt: off
CENTRE = (
    (3.3871328727963666080, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)
TAIL = (
    (1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
     1.27045825245236838258, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1,
     1.4810397642748007459e-1, 1.51986665636164571966e-2, 5.475938084995344946e-4, 1.05075007164441684324e-9),
)
# fmt: on


class QuantileTransformerDefinition(ModelDefinition):
    """QuantileTransformer: the empirical distribution function of a column, or its normal quantile."""

    # (i + (x - q_i) / (q_{i+1} - q_i)) / (n - 1) between quantiles i and i + 1 of n, for equal quantiles the
    # mean of the first and the last position
    keeps_missing = True
    continuous = False  # at repeated quantiles

    def covers(self, model: Any) -> bool:
        return bool(np.isfinite(model.quantiles_).all())

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        n, columns = model.quantiles_.shape
        normal = model.output_distribution == "normal"
        if n == 1 and not normal:
            return transformation(op, op.Sub(x, x), columns)  # 0 or NaN
        reason = "" if n > 1 else "with a single quantile, the output is a step function"
        quantiles = op.parameter(model, "quantiles_", constraint=Rising(), reason=reason)
        first, last = (op.Gather(quantiles, [i], axis=0) for i in (0, n - 1))
        if normal:
            below = op.Less(op.Sub(x, BOUNDS_THRESHOLD), first)
            above = op.Greater(op.Add(x, BOUNDS_THRESHOLD), last)
        else:
            below, above = op.LessOrEqual(x, first), op.GreaterOrEqual(x, last)
        low = op.ones_where(below)
        high = op.Mul(op.ones_where(above), op.Sub(1.0, low))
        if n > 1:
            # positions from the last and from the first of equal quantiles
            ends = [_position(op, quantiles, x, kind, n) for kind in ("LessOrEqual", "Less")]
            inside = op.Mul(op.ones_where(op.Not(op.Or(below, above))), 0.5 / (n - 1))
            pairs = zip(zip(*ends, strict=True), (high, low), strict=True)
            high, low = (op.Add(op.Mul(op.Add(*positions), inside), end) for positions, end in pairs)
        result = _normal_quantiles(op, high, low) if normal else high
        return transformation(op, op.Add(result, op.Sub(x, x)), columns)  # NaN where x is NaN

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        if model.output_distribution == "normal":
            y = op.Mul(op.Add(erf(op, op.Mul(y, float(np.sqrt(0.5)))), 1.0), 0.5)
            above = op.Where(op.Greater(y, 1 - BOUNDS_THRESHOLD), 1.0, y)
            y = op.Where(op.Less(y, BOUNDS_THRESHOLD), 0.0, above)
        last = len(model.quantiles_) - 1
        quantiles = op.constant(model.quantiles_.astype(op.float_dtype))
        position = op.Mul(op.Min(op.Max(y, 0.0), 1.0), float(last))
        low = op.Min(op.Floor(position), float(max(last - 1, 0)))
        index = op.Cast(low, to=TensorProto.INT64)
        left = op.GatherElements(quantiles, index, axis=0)
        right = op.GatherElements(quantiles, op.Min(op.Add(index, 1), last), axis=0)
        return op.Add(left, op.Mul(op.Sub(right, left), op.Sub(position, low)))


def _position(op: ModelWriter, quantiles: str, x: str, comparison: str, n: int) -> tuple[str, str]:
    """Append the positions of values among the quantiles, from the first and from the last one."""
    index = _search(op, quantiles, x, comparison, n)
    low = op.GatherElements(quantiles, index, axis=0)
    high = op.GatherElements(quantiles, op.Add(index, 1), axis=0)
    width = op.Sub(high, low)
    # a width may be 0 outside of the quantiles, for which the result is not used
    safe = op.Add(width, op.ones_where(op.LessOrEqual(width, 0.0)))
    start = op.Cast(index, to=op.elem_type)
    from_first = op.Add(start, op.Div(op.Sub(x, low), safe))
    # n - 1 - from_first would lose digits of small positions
    return from_first, op.Add(op.Sub(float(n - 2), start), op.Div(op.Sub(high, x), safe))


def _search(op: ModelWriter, quantiles: str, x: str, comparison: str, n: int) -> str:
    """Append the number of inner quantiles below x, or up to it, by binary search."""
    index = op.Cast(op.Mul(op.ones_where(op.Equal(x, x)), 0.0), to=TensorProto.INT64)
    for step in (2**power for power in reversed(range((n - 1).bit_length()))):
        candidate = op.Add(index, step)
        value = op.GatherElements(quantiles, op.Min(candidate, n - 2), axis=0)
        below = op.And(op.node(comparison, value, x), op.LessOrEqual(candidate, n - 2))
        index = op.Add(index, op.Mul(op.Cast(below, to=TensorProto.INT64), step))
    return index


def _normal_quantiles(op: ModelWriter, p: str, complement: str) -> str:
    """Append the quantiles of the normal distribution, from probabilities p and 1 - p."""
    q = op.Mul(op.Sub(p, complement), 0.5)
    is_tail = op.ones_where(op.Greater(op.Abs(q), 0.425))
    inner = op.Max(op.Sub(0.180625, op.Mul(q, q)), 0.0)
    centre = op.Mul(q, op.Div(*(polynomial(op, inner, coefficients) for coefficients in CENTRE)))
    smaller = op.Max(op.Min(p, complement), float(BOUNDS_THRESHOLD - np.spacing(1)))
    sign = op.Sub(op.Mul(op.ones_where(op.Greater(q, 0.0)), 2.0), 1.0)
    outer = op.Sub(op.Sqrt(op.Neg(op.Log(smaller))), 1.6)
    tail = op.Mul(sign, op.Div(*(polynomial(op, outer, coefficients) for coefficients in TAIL)))
    return op.Add(op.Mul(centre, op.Sub(1.0, is_tail)), op.Mul(tail, is_tail))
