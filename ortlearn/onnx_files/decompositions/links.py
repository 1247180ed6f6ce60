"""The transforms that linear operators and trees end with (attribute ``post_transform``)."""

import math
from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from ...graphs import GraphBuilder
from ...models.distances import reduced

#: Constants of the inverse error function in onnxruntime (approximation by Winitzki, 2008).
WINITZKI, PI = 0.147, 3.14159
NEGLIGIBLE = 1e-7  # largest magnitude that is zero for SOFTMAX_ZERO


def _softmax_zero(op: GraphBuilder, scores: str) -> str:
    # exp(s) / sum of exp(s) over the scores that are not zero; zeros stay
    present = op.Greater(op.Abs(scores), NEGLIGIBLE)
    shifted = op.Sub(scores, reduced(op, "ReduceMax", scores, 1))
    shares = op.Mul(op.Exp(shifted), op.Cast(present, to=TensorProto.FLOAT))
    return op.Div(shares, op.ReduceSum(shares, [1]))


def _probit(op: GraphBuilder, scores: str) -> str:
    # sqrt(2) erfinv(x), x = 2 s - 1: erfinv(x) = sign(x) sqrt(sqrt(c^2 - l / a) - c),
    # l = log(1 - x^2), c = 2 / (pi a) + l / 2
    x = op.Sub(op.Add(scores, scores), 1.0)
    log = op.Log(op.Mul(op.Sub(1.0, x), op.Add(x, 1.0)))
    c = op.Add(op.Mul(log, 0.5), 2 / (PI * WINITZKI))
    inner = op.Sqrt(op.Sub(op.Mul(c, c), op.Mul(log, 1 / WINITZKI)))
    # not the root of zero, whose gradient is infinite
    square = op.Max(op.Sub(inner, c), float(np.finfo(np.float32).tiny))
    return op.Mul(op.Mul(op.Sign(x), op.Sqrt(square)), math.sqrt(2))


#: Transform by name, of raw scores of shape (n, columns), float32.
LINKS: dict[str, Callable[[GraphBuilder, str], str]] = {
    "NONE": lambda op, scores: scores,
    "LOGISTIC": lambda op, scores: op.Sigmoid(scores),
    "SOFTMAX": lambda op, scores: op.Softmax(scores, axis=1),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
