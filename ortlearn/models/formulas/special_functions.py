"""Special functions and Matérn kernels by ONNX operators."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial.hermite import hermval
from onnx import TensorProto
from scipy.special import erf as scipy_erf
from scipy.special import factorial

from ...graphs import GraphBuilder
from .distances import guarded_sqrt

SHIFT = 6  # number of steps of the recurrence digamma(x + 1) = digamma(x) + 1 / x
#: Coefficients ``B_2k / 2k`` of ``-1 / x^2k`` in the asymptotic series of digamma.
SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)
#: Points per unit, last point, and terms of the Taylor series of the error function in float64.
POINTS, LAST_POINT, TERMS = 16, 6, 9


def exponential(op: GraphBuilder, x: str) -> str:
    """Return the exponential, which becomes zero for small x."""
    # onnxruntime's of float64 is at least 5.6e-309, so that samples without any similar one would have some
    if op.float_dtype != np.float64:
        return op.Exp(x)
    root = op.Exp(op.Mul(x, 0.5))
    return op.Mul(root, root)


def polynomial(op: GraphBuilder, x: str, coefficients: Sequence[Any]) -> str:
    """Return a polynomial by Horner's method; coefficients are floats or tensors, constant term first."""
    result = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        result = op.Add(op.Mul(result, x), coefficient)
    return result


def erf(op: GraphBuilder, x: str) -> str:
    """Return the error function, to 13 digits in float64."""
    # onnxruntime has no float64 kernel: the Taylor series around the nearest point c, with derivatives
    # 2 / sqrt(pi) (-1)^k H_k(c) exp(-c^2) (Abramowitz and Stegun, 1964, 7.1.19)
    if op.float_dtype == np.float32:
        return op.Erf(x)
    size = op.Min(op.Where(op.Less(x, 0.0), op.Neg(x), x), float(LAST_POINT))
    index = op.Round(op.Mul(size, float(POINTS)))
    step = op.Sub(size, op.Mul(index, 1 / POINTS))
    series = op.Gather(_series_of_erf(), op.Cast(index, to=TensorProto.INT64), axis=0)
    columns = op.Split(series, axis=-1, num_outputs=TERMS, n_outputs=TERMS)
    result = polynomial(op, step, [op.Squeeze(column, [-1]) for column in columns])
    return op.Where(op.Less(x, 0.0), op.Neg(result), result)


@cache
def _series_of_erf() -> np.ndarray:
    """Return the coefficients of the error function around each point, of shape (n_points, TERMS)."""
    points = np.arange(LAST_POINT * POINTS + 1) / POINTS
    slopes = [(-1) ** k * hermval(points, [*[0] * k, 1]) * np.exp(-(points**2)) for k in range(TERMS - 1)]
    derivatives = [scipy_erf(points), *(2 / np.sqrt(np.pi) * slope for slope in slopes)]
    return np.stack(derivatives, axis=1) / factorial(np.arange(TERMS))


def digamma(op: GraphBuilder, x: str) -> str:
    """Return the digamma function of positive values to 12 digits (Abramowitz and Stegun, 6.3.5, 6.3.18)."""
    reciprocals = op.Reciprocal(x)
    for i in range(1, SHIFT):
        reciprocals = op.Add(reciprocals, op.Reciprocal(op.Add(x, float(i))))
    shifted = op.Add(x, float(SHIFT))
    inverse = op.Reciprocal(shifted)
    square = op.Mul(inverse, inverse)
    series = op.Mul(square, SERIES[-1])
    for coefficient in reversed(SERIES[:-1]):
        series = op.Mul(square, op.Add(series, coefficient))
    return op.Sub(op.Sub(op.Log(shifted), op.Mul(inverse, 0.5)), op.Add(series, reciprocals))


LARGEST_HALF = 6.5  # largest half-integer nu whose kernel is written as a polynomial
#: Exponents x for which exp(-x) is zero in float64, or negligible relative to one.
UNDERFLOW, NEGLIGIBLE = 750.0, 36.0
#: Number of steps of the integral, width of the intervals of ``log z^2``, and degree of the polynomials.
N_STEPS, WIDTH, DEGREE = 400, 0.5, 9


def matern(op: GraphBuilder, squares: str, nu: float) -> str:
    """Return the Matérn kernel of squared distances d^2, with a gradient of zero at zero."""
    # with z = sqrt(2 nu) d: 2^(1 - nu) / Gamma(nu) z^nu K_nu(z), K the modified Bessel function of the second
    # kind (Rasmussen, C. E. and Williams, C. K. I., "Gaussian Processes for Machine Learning", MIT Press
    # 2006, equation 4.14)
    if nu == np.inf:
        return exponential(op, op.Mul(squares, -0.5))
    if float(2 * nu).is_integer() and 2 * nu % 2 == 1 and nu <= LARGEST_HALF:
        return _half_integer(op, squares, int(nu))
    return _by_table(op, squares, float(nu))


def _half_integer(op: GraphBuilder, squares: str, p: int) -> str:
    """Return the kernel of ``nu = p + 1/2``, a polynomial of degree p in z times ``exp(-z)``."""
    # the coefficient of z^j is p! / (2p)! (2p - j)! / (j! (p - j)!) 2^j (ibid., equation 4.16)
    if p == 0:
        return exponential(op, op.Neg(guarded_sqrt(op, squares, op.float_dtype)))
    # clipped to a distance whose exponential is zero, so that powers stay finite
    distance = guarded_sqrt(op, op.Min(squares, (2 * UNDERFLOW) ** 2), op.float_dtype)
    z = op.Mul(distance, math.sqrt(2 * p + 1))
    binomials = [math.comb(p, j) * math.perm(2 * p - j, p - j) for j in range(p + 1)]
    *lower, highest = (b * 2.0**j / math.perm(2 * p, p) for j, b in enumerate(binomials))
    total = op.Mul(z, highest)
    for coefficient in reversed(lower[1:]):
        total = op.Mul(op.Add(total, coefficient), z)
    return op.Mul(op.Add(total, 1.0), exponential(op, op.Neg(z)))


def _by_table(op: GraphBuilder, squares: str, nu: float) -> str:
    """Return the kernel as the exponential of a piecewise polynomial in ``u = log z^2``, to within 1e-11."""
    # interpolated at the Chebyshev points of each interval of u; scikit-learn replaces a distance of zero by
    # the machine epsilon, and for large distances the kernel is zero
    nearest = 2 * nu * float(np.finfo(np.float64).eps) ** 2
    farthest = (2 * UNDERFLOW) ** 2 + 4 * nu * UNDERFLOW
    low = math.log(nearest)
    middles = low + WIDTH * (0.5 + np.arange(math.ceil((math.log(farthest) - low) / WIDTH) + 1))
    points = np.polynomial.chebyshev.chebpts1(DEGREE + 1)
    values = log_matern(np.exp(middles + WIDTH / 2 * points[:, np.newaxis]), nu)
    coefficients = np.linalg.solve(np.vander(points), values)  # of the highest power first
    clipped = op.Min(op.Max(op.Mul(squares, 2 * nu), nearest), farthest)
    u = op.Sub(op.Log(clipped), low)
    # clipped, as the index of NaN must be valid too
    index = op.Max(op.Cast(op.Mul(u, 1 / WIDTH), to=TensorProto.INT64), 0)
    middle = op.Gather((middles - low).astype(op.float_dtype), index, axis=0)
    x = op.Mul(op.Sub(u, middle), 2 / WIDTH)
    terms = [op.Gather(c.astype(op.float_dtype), index, axis=0) for c in coefficients]
    return exponential(op, polynomial(op, x, terms[::-1]))


def log_matern(z2: np.ndarray, nu: float) -> np.ndarray:
    """Return the logarithm of the kernel from ``z^2``, by an integral of Gaussian kernels."""
    # K_nu(z) = (z / 2)^(-nu) / 2 int exp(nu s - e^s - z^2 / 4 e^-s) ds (NIST Digital Library of Mathematical
    # Functions, equation 10.32.10, with t = e^s); the kernel is the integral divided by Gamma(nu). With
    # r = sqrt(nu^2 + z^2), the maximum of the integrand is exp(nu log a - r), at e^s = a = (nu + r) / 2. At a
    # distance t from it, the integrand is exp(nu t - a e^t - b e^-t + r) times the maximum, b = z^2 / (4 a),
    # and negligible if r (cosh t - 1) or, to the left, (r - nu) (cosh t - 1) or nu (|t| - 1) exceeds
    # NEGLIGIBLE. The trapezoidal rule converges exponentially (Trefethen, L. N. and Weideman, J. A. C., SIAM
    # Review 56, 2014).
    r = np.sqrt(z2 + nu * nu)
    a, b = (r + nu) / 2, z2 / (r + nu) / 2
    right = np.arccosh(1 + NEGLIGIBLE / r)
    left = np.minimum(1 + NEGLIGIBLE / nu, np.arccosh(1 + NEGLIGIBLE / (2 * b)))
    step = (left + right) / N_STEPS
    t = step * np.arange(N_STEPS + 1).reshape(-1, *[1] * z2.ndim) - left
    total = np.exp(nu * t - a * np.exp(t) - b * np.exp(-t) + r).sum(axis=0)
    return np.log(total * step) + nu * np.log(a) - r - math.lgamma(nu)
