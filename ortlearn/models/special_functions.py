"""Special functions that ONNX lacks, in its operators, and Matérn kernels of any smoothness."""

import math
from functools import cache

import numpy as np
from numpy.polynomial.hermite import hermval
from onnx import TensorProto
from scipy.special import erf as scipy_erf
from scipy.special import factorial

from ..graphs import GraphBuilder
from .distances import guarded_sqrt

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


#: Largest nu whose kernel is written as a polynomial, where it is half of an odd number.
LARGEST_HALF = 6.5
#: Minus the logarithm of what is zero in float64, and of what is nothing beside one.
UNDERFLOW = 750.0
DIGITS = 36.0
#: Steps of the integral, intervals of ``log z^2`` and degree of the polynomials.
N_STEPS = 400
WIDTH = 0.5
DEGREE = 9


def matern(op: GraphBuilder, squares: str, nu: float) -> str:
    """Return the Matérn kernel of squared distances d^2; a distance of zero has no gradient.

    With ``z = sqrt(2 nu) d`` it is ``2^(1 - nu) / Gamma(nu) z^nu K_nu(z)``, K the modified Bessel function of
    the second kind (Rasmussen, C. E. and Williams, C. K. I., "Gaussian Processes for Machine Learning", MIT
    Press 2006, equation 4.14).
    """
    if nu == np.inf:
        return op.Exp(op.Mul(squares, -0.5))
    if float(2 * nu).is_integer() and 2 * nu % 2 == 1 and nu <= LARGEST_HALF:
        return _half_integer(op, squares, int(nu))
    return _by_table(op, squares, float(nu))


def _half_integer(op: GraphBuilder, squares: str, p: int) -> str:
    """Return the kernel of ``nu = p + 1/2``, a polynomial of degree p in z times ``exp(-z)``.

    Its coefficient of ``z^j`` is ``p! / (2p)! (2p - j)! / (j! (p - j)!) 2^j`` (ibid., equation 4.16).
    """
    if p == 0:
        return op.Exp(op.Neg(guarded_sqrt(op, squares, op.float_dtype)))
    # far away the exponential is zero, and powers stay finite
    distance = guarded_sqrt(op, op.Min(squares, (2 * UNDERFLOW) ** 2), op.float_dtype)
    z = op.Mul(distance, math.sqrt(2 * p + 1))
    binomials = [math.comb(p, j) * math.perm(2 * p - j, p - j) for j in range(p + 1)]
    *lower, highest = (b * 2.0**j / math.perm(2 * p, p) for j, b in enumerate(binomials))
    total = op.Mul(z, highest)
    for coefficient in reversed(lower[1:]):
        total = op.Mul(op.Add(total, coefficient), z)
    return op.Mul(op.Add(total, 1.0), op.Exp(op.Neg(z)))


def _by_table(op: GraphBuilder, squares: str, nu: float) -> str:
    """Return the kernel as the exponential of a piecewise polynomial in ``u = log z^2``, to within 1e-11.

    It passes through the logarithm of the kernel at the Chebyshev points of each interval of u.
    """
    # scikit-learn takes a distance of zero for the smallest difference from one; far away the kernel is zero
    nearest = 2 * nu * float(np.finfo(np.float64).eps) ** 2
    farthest = (2 * UNDERFLOW) ** 2 + 4 * nu * UNDERFLOW
    low = math.log(nearest)
    middles = low + WIDTH * (0.5 + np.arange(math.ceil((math.log(farthest) - low) / WIDTH) + 1))
    points = np.polynomial.chebyshev.chebpts1(DEGREE + 1)
    values = log_matern(np.exp(middles + WIDTH / 2 * points[:, np.newaxis]), nu)
    coefficients = np.linalg.solve(np.vander(points), values)  # of the highest power first
    clipped = op.Min(op.Max(op.Mul(squares, 2 * nu), nearest), farthest)
    u = op.Sub(op.Log(clipped), low)
    # what is not a number stays so, in an interval that there is
    number = op.Max(op.Cast(op.Mul(u, 1 / WIDTH), to=TensorProto.INT64), 0)
    middle = op.Gather((middles - low).astype(op.float_dtype), number, axis=0)
    x = op.Mul(op.Sub(u, middle), 2 / WIDTH)
    highest, *others = (op.Gather(c.astype(op.float_dtype), number, axis=0) for c in coefficients)
    for coefficient in others:
        highest = op.Add(op.Mul(highest, x), coefficient)
    return op.Exp(highest)


def log_matern(z2: np.ndarray, nu: float) -> np.ndarray:
    """Return the logarithm of the kernel from ``z^2``, by an integral of Gaussian kernels.

    ``K_nu(z) = (z / 2)^(-nu) / 2 int exp(nu s - e^s - z^2 / 4 e^-s) ds`` over all s (NIST Digital Library
    of Mathematical Functions, equation 10.32.10, with ``t = e^s``, and ``K_nu = K_-nu``). The kernel is
    that integral divided by ``Gamma(nu)``. The integrand is largest at ``e^s = a = (nu + r) / 2``, with
    ``r = sqrt(nu^2 + z^2)``; there it is ``exp(nu log a - r)``, and at a distance t from there
    ``exp(nu t - a e^t - b e^-t + r)`` times that, with ``b = z^2 / (4 a)``. It is below ``exp(-DIGITS)``
    times the largest where ``r (cosh t - 1)`` or, to the left, ``(r - nu) (cosh t - 1)`` or
    ``nu (|t| - 1)`` exceeds DIGITS. The trapezoidal rule converges exponentially for such functions
    (Trefethen, L. N. and Weideman, J. A. C., "The exponentially convergent trapezoidal rule", SIAM Review
    56, 2014).

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.models.special_functions import log_matern
    >>> np.exp(log_matern(np.array([0.25, 4.0]), 0.5)).round(12), np.exp([-0.5, -2.0]).round(12)
    (array([0.60653066, 0.13533528]), array([0.60653066, 0.13533528]))
    """
    r = np.sqrt(z2 + nu * nu)
    a, b = (r + nu) / 2, z2 / (r + nu) / 2
    right = np.arccosh(1 + DIGITS / r)
    left = np.minimum(1 + DIGITS / nu, np.arccosh(1 + DIGITS / (2 * b)))
    step = (left + right) / N_STEPS
    t = step * np.arange(N_STEPS + 1).reshape(-1, *[1] * z2.ndim) - left
    total = np.exp(nu * t - a * np.exp(t) - b * np.exp(-t) + r).sum(axis=0)
    return np.log(total * step) + nu * np.log(a) - r - math.lgamma(nu)
