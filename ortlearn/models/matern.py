"""Matérn kernels of any smoothness.

With ``z = sqrt(2 nu) d`` they are ``2^(1 - nu) / Gamma(nu) z^nu K_nu(z)``, K the modified Bessel function of
the second kind (Rasmussen, C. E. and Williams, C. K. I., "Gaussian Processes for Machine Learning", MIT
Press 2006, equation 4.14).
"""

import math
from typing import Any

import numpy as np

from ..graphs import GraphBuilder
from .distances import guarded_sqrt

#: Largest nu whose kernel is written as a polynomial, where it is half of an odd number.
LARGEST_HALF = 6.5
#: Minus the logarithm of what is zero in float64.
UNDERFLOW = 750.0


def matern(op: GraphBuilder, squares: str, nu: float) -> str:
    """Return the Matérn kernel of squared distances, a matrix of the builder's type.

    It is smooth in the distances wherever they are not zero; of a distance of zero there is no gradient.
    """
    if nu == np.inf:
        return op.Exp(op.Mul(squares, -0.5))
    if float(2 * nu).is_integer() and 2 * nu % 2 == 1 and nu <= LARGEST_HALF:
        return _half_integer(op, squares, int(nu))
    return _by_quadrature(op, squares, float(nu))


def _half_integer(op: GraphBuilder, squares: str, p: int) -> str:
    """Return the kernel of ``nu = p + 1/2``, a polynomial of degree p in z times ``exp(-z)``.

    Its coefficient of ``z^j`` is ``p! / (2p)! (2p - j)! / (j! (p - j)!) 2^j`` (ibid., equation 4.16).
    """
    if p > 2:  # lower powers of distances stay finite
        squares = op.Min(squares, (2 * UNDERFLOW) ** 2)
    distance = guarded_sqrt(op, squares, op.float_dtype)
    if p == 0:
        return op.Exp(op.Neg(distance))
    z = op.Mul(distance, math.sqrt(2 * p + 1))
    binomials = [math.comb(p, j) * math.perm(2 * p - j, p - j) for j in range(p + 1)]
    *lower, highest = (b * 2.0**j / math.perm(2 * p, p) for j, b in enumerate(binomials))
    total = op.Mul(z, highest)
    for coefficient in reversed(lower[1:]):
        total = op.Mul(op.Add(total, coefficient), z)
    return op.Mul(op.Add(total, 1.0), op.Exp(op.Neg(z)))


def _by_quadrature(op: GraphBuilder, squares: str, nu: float) -> str:
    """Return the kernel from an integral over Gaussian kernels, by the trapezoidal rule.

    ``K_nu(z) = (z / 2)^(-nu) / 2 int exp(nu s - e^s - z^2 / 4 e^-s) ds`` over all s (NIST Digital Library
    of Mathematical Functions, equation 10.32.10, with ``t = e^s``, and ``K_nu = K_-nu``). The kernel is
    that integral divided by ``Gamma(nu)``. The integrand is largest at ``e^s = a = (nu + r) / 2``, with
    ``r = sqrt(nu^2 + z^2)``; there it is ``exp(nu log a - r)``, and at a distance t from there
    ``exp(nu t - a e^t - b e^-t + r)`` times that, with ``b = z^2 / (4 a)``. The rule converges
    exponentially for such functions (Trefethen, L. N. and Weideman, J. A. C., "The exponentially
    convergent trapezoidal rule", SIAM Review 56, 2014): the error is ``exp(-pi^2 / h)`` for steps h.
    """
    digits = _digits(op.float_dtype)
    # scikit-learn takes a distance of zero for the smallest difference from one; far away it is zero
    z2 = op.Mul(op.Max(squares, float(np.finfo(np.float64).eps) ** 2), 2 * nu)
    z2 = op.Min(z2, (2 * UNDERFLOW) ** 2 + 4 * nu * UNDERFLOW)
    r = op.Sqrt(op.Add(z2, nu * nu))
    sum_ab, difference = op.Add(r, nu), op.Div(z2, op.Add(r, nu))  # r + nu and r - nu
    right = _reach(op, op.Div(digits, r))
    left = op.Min(_reach(op, op.Div(digits, difference)), 1 + digits / nu)
    step = op.Div(op.Add(left, right), float(_n_steps(nu, digits)))
    count = np.arange(_n_steps(nu, digits) + 1, dtype=op.float_dtype)
    t = op.Sub(op.Mul(op.Unsqueeze(step, [2]), count), op.Unsqueeze(left, [2]))
    growth = op.Exp(t)
    a, b = (op.Mul(op.Unsqueeze(part, [2]), 0.5) for part in (sum_ab, difference))
    exponent = op.Sub(op.Mul(t, nu), op.Add(op.Mul(a, growth), op.Div(b, growth)))
    total = op.ReduceSum(op.Exp(op.Add(exponent, op.Unsqueeze(r, [2]))), [2], keepdims=0)
    largest = op.Sub(op.Mul(op.Log(op.Mul(sum_ab, 0.5)), nu), op.Add(r, math.lgamma(nu)))
    return op.Mul(op.Mul(total, step), op.Exp(largest))


def _digits(dtype: Any) -> float:
    """Return minus the logarithm of what terms are left out below, relative to the largest."""
    return 27.0 if np.dtype(dtype) == np.float64 else 18.0


def _reach(op: GraphBuilder, excess: str) -> str:
    """Return ``acosh(1 + excess)``, beyond which terms are left out."""
    # two roots: the square of a large number is none in float32
    root = op.Mul(op.Sqrt(excess), op.Sqrt(op.Add(excess, 2.0)))
    return op.Log(op.Add(op.Add(excess, 1.0), root))


def _n_steps(nu: float, digits: float) -> int:
    """Return the number of steps, for which the error is ``exp(-digits)`` at all distances.

    The interval is longest at the smallest distance. For large z and nu terms are those of a normal
    density, on an interval of so many deviations: steps are a part of one then.
    """
    difference = np.finfo(np.float64).eps ** 2  # r - nu at the smallest distance
    length = math.acosh(1 + digits / nu) + min(1 + digits / nu, math.log(2 * (1 + digits / difference)))
    return math.ceil(max(length * digits / math.pi**2, 1.4 * digits))
