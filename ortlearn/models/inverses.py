"""Inverses of power transforms, of labels."""

from typing import Any

import numpy as np

from .writer import ModelWriter


def undone_power(op: ModelWriter, model: Any, y: str) -> str:
    """Append the inverse of a PowerTransformer without its scaler (Yeo, I. and Johnson, R. A., "A new family
    of power transformations to improve normality or symmetry", Biometrika 87 (2000), 954-959, equation 2.1).
    """
    rate = np.asarray(model.lambdas_, dtype=np.float64)
    if model.method == "box-cox":
        return op.Exp(_exponent(op, y, rate))
    # each is zero on the side of the other
    above = op.Exp(_exponent(op, op.Max(y, 0.0), rate))
    below = op.Exp(_exponent(op, op.Max(op.Neg(y), 0.0), 2 - rate))
    return op.Sub(above, below)


def _exponent(op: ModelWriter, y: str, rate: np.ndarray) -> str:
    """Append ``log(1 + r y) / r`` with the rate r of each column, y where it is zero."""
    none = np.abs(rate) < np.spacing(1.0)
    if none.all():
        return y
    factor, share = (own.astype(op.float_dtype) for own in (rate * ~none, np.where(none, 0, 1)))
    divisor = np.where(none, 1, rate).astype(op.float_dtype)
    result = op.Div(op.Log(op.Add(op.Mul(y, factor), 1.0)), divisor)
    return result if not none.any() else op.Add(result, op.Mul(y, 1 - share))
