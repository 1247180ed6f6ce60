"""Matérn kernels of any smoothness.

With ``z = sqrt(2 nu) d`` they are ``2^(1 - nu) / Gamma(nu) z^nu K_nu(z)``, K the modified Bessel function of
the second kind (Rasmussen, C. E. and Williams, C. K. I., "Gaussian Processes for Machine Learning", MIT
Press 2006, equation 4.14).
"""

import math

import numpy as np
from onnx import TensorProto

from ..graphs import GraphBuilder
from .distances import guarded_sqrt

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
    """Return the Matérn kernel of squared distances; a distance of zero has no gradient."""
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
    >>> from ortlearn.models.matern import log_matern
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
