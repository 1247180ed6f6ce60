"""PowerTransformer in one formula for both signs, with a gradient in the power wherever it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from ...graphs import GraphBuilder
from .writing import add_nodes, add_weight, start, write_as

__all__ = ["convert"]

#: Below that, ``(e^z - 1) / z`` is a sum of powers of z: the difference would lose its digits.
SMALL = 0.05
#: Divisors of its terms, ``1 + z / 2 (1 + z / 3 (1 + ...))``: whole numbers, which no weight looks like.
DIVISORS = (2.0, 3.0, 4.0, 5.0)


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Write the power transform of a row, standardised where the estimator does that.

    Box-Cox is ``(x^p - 1) / p = u f(p u)`` with ``u = log x`` and ``f(z) = (e^z - 1) / z``. Yeo-Johnson
    is the same with ``u = log(1 + |x|)``, the sign of x, and ``2 - p`` for p where x is negative. f is
    smooth, 1 at z = 0, where the usual forms are undefined.

    References
    ----------
    Yeo, I.-K. and Johnson, R. A., "A new family of power transformations to improve normality or
    symmetry", Biometrika 87, 2000. Box, G. E. P. and Cox, D. R., "An analysis of transformations",
    Journal of the Royal Statistical Society B 26, 1964.
    """
    estimator = operator.raw_operator
    op, x = start(scope, operator)
    power = add_weight(op, "lambdas", estimator.lambdas_)
    if estimator.method == "box-cox":
        logarithm = op.Log(x)
        result = op.Mul(logarithm, _growth(op, op.Mul(power, logarithm)))
    else:
        positive = op.Cast(op.GreaterOrEqual(x, 0.0), to=_elem_type(op))
        sign = op.Sub(op.Mul(positive, 2.0), 1.0)
        logarithm = op.Log(op.Add(op.Mul(sign, x), 1.0))
        # p where x is positive, 2 - p elsewhere
        exponent = op.Add(op.Mul(sign, power), op.Mul(op.Sub(1.0, positive), 2.0))
        result = op.Mul(op.Mul(sign, logarithm), _growth(op, op.Mul(exponent, logarithm)))
    if estimator.standardize:
        centred = op.Sub(result, add_weight(op, "mean", estimator._scaler.mean_))
        result = op.Div(centred, add_weight(op, "scale", estimator._scaler.scale_))
    write_as(op, result, operator.outputs[0])
    add_nodes(container, op)


def _growth(op: GraphBuilder, z: str) -> str:
    """Append ``(e^z - 1) / z``; each branch sees only numbers that it is good for."""
    near = op.Cast(op.Less(op.Abs(z), SMALL), to=_elem_type(op))
    far = op.Sub(1.0, near)
    large = op.Add(op.Mul(z, far), near)  # 1 where z is small
    quotient = op.Div(op.Sub(op.Exp(large), 1.0), large)
    small = op.Mul(z, near)
    series = op.constant(1.0)
    for divisor in reversed(DIVISORS):
        series = op.Add(op.Mul(series, op.Div(small, divisor)), 1.0)
    return op.Add(op.Mul(quotient, far), op.Mul(series, near))


def _elem_type(op: GraphBuilder) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(op.float_dtype))
