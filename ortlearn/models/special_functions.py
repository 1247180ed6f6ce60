"""Special functions that ONNX lacks, in its operators."""

from functools import cache

import numpy as np
from numpy.polynomial.hermite import hermval
from onnx import TensorProto
from scipy.special import erf as scipy_erf
from scipy.special import factorial

from ..graphs import GraphBuilder

#: Numbers are moved by so much, by the recurrence ``digamma(x + 1) = digamma(x) + 1 / x``.
SHIFT = 6
#: Coefficients of ``-1 / x^2k`` in the asymptotic series, ``B_2k / 2k``.
SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)

#: Points around which the error function is a series in float64: so many in a unit, up to where it is one.
POINTS, LAST_POINT = 16, 6
#: Terms of each series.
TERMS = 9


def erf(op: GraphBuilder, x: str) -> str:
    """Return the error function; onnxruntime has an operator of float32 only.

    In float64 it is the Taylor series around the nearest of some points c, with derivatives
    ``2 / sqrt(pi) (-1)^k H_k(c) exp(-c^2)`` (Abramowitz and Stegun, 1964, 7.1.19): 13 digits.
    """
    if op.float_dtype == np.float32:
        return op.Erf(x)
    size = op.Min(op.Where(op.Less(x, 0.0), op.Neg(x), x), float(LAST_POINT))
    number = op.Round(op.Mul(size, float(POINTS)))
    step = op.Sub(size, op.Mul(number, 1 / POINTS))
    rows = op.Gather(_series_of_erf(), op.Cast(number, to=TensorProto.INT64), axis=0)
    terms = [op.Squeeze(part, [-1]) for part in op.Split(rows, axis=-1, num_outputs=TERMS, n_outputs=TERMS)]
    result = terms[-1]
    for term in reversed(terms[:-1]):
        result = op.Add(op.Mul(result, step), term)
    return op.Where(op.Less(x, 0.0), op.Neg(result), result)


@cache
def _series_of_erf() -> np.ndarray:
    """Return the coefficients of the error function around each point, of shape (n_points, TERMS)."""
    points = np.arange(LAST_POINT * POINTS + 1) / POINTS
    slopes = [(-1) ** k * hermval(points, [*[0] * k, 1]) * np.exp(-(points**2)) for k in range(TERMS - 1)]
    rows = [scipy_erf(points), *(2 / np.sqrt(np.pi) * slope for slope in slopes)]
    return np.stack(rows, axis=1) / factorial(np.arange(TERMS))


def digamma(op: GraphBuilder, x: str) -> str:
    """Return the digamma function of positive numbers, 12 digits (Abramowitz and Stegun, 6.3.5 and 18)."""
    reciprocals = op.Reciprocal(x)
    for i in range(1, SHIFT):
        reciprocals = op.Add(reciprocals, op.Reciprocal(op.Add(x, float(i))))
    moved = op.Add(x, float(SHIFT))
    inverse = op.Reciprocal(moved)
    square = op.Mul(inverse, inverse)
    series = op.Mul(square, SERIES[-1])
    for coefficient in reversed(SERIES[:-1]):
        series = op.Mul(square, op.Add(series, coefficient))
    return op.Sub(op.Sub(op.Log(moved), op.Mul(inverse, 0.5)), op.Add(series, reciprocals))
