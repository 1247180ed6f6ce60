"""Records of elementwise operators."""

from __future__ import annotations

import numpy as np

from tests.differentiation.records_base import (
    NEWEST,
    Record,
    away,
    distinct,
    ints,
    normal,
    ones_like_mask,
    positive,
    unary,
    within,
)

__all__ = ["ACTIVATIONS", "ARITHMETIC", "FUNCTIONS"]

ARITHMETIC = [
    *(
        Record(name, shapes, **({"attributes": {"fmod": 1}} if name == "Mod" else {}))
        for name in ("Add", "Sub", "Mul")
        for shapes in (
            (normal(4, 3), normal(4, 3)),
            (normal(4, 3), normal(3)),
            (normal(4, 3), normal(1, 3)),
            (normal(4, 3), normal(4, 1)),
            (normal(4, 1), normal(1, 3)),
            (normal(2, 1, 3), normal(5, 1)),
            (normal(), normal(2, 3)),
        )
    ),
    Record("Div", (normal(4, 3), positive(4, 3))),
    Record("Div", (normal(4, 3), positive(3))),
    Record("Mod", (within(0.1, 0.4, 4, 3), within(0.5, 0.9, 3)), {"fmod": 1}),
    Record("Mod", (within(-2.4, -2.1, 4, 3), within(0.95, 1.0, 3)), {"fmod": 1}),
    Record("Mod", (within(-2.4, -2.1, 4, 3), within(0.95, 1.0, 3)), **NEWEST),
    *unary("Neg Exp Identity", normal(4, 3)),
    Record("Abs", (away(4, 3),)),
    *unary("Log Sqrt Reciprocal", positive(4, 3)),
    Record("Pow", (positive(4, 3), normal(3))),
    Record("Pow", (positive(3), normal(4, 3)), empty=False),
    *(
        Record("Pow", (positive(4, 3), np.array(value)), constants=(1,))
        for value in (2.0, 3.0, 0.5, -1.0, 1.0, 0.0)
    ),
    Record("Pow", (normal(4, 3), ints(2)), constants=(1,)),
    Record("Pow", (np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 3.0])), wrt=(0,), second=False),
    Record("Sum", (normal(4, 3), normal(3), normal(4, 1))),
    Record("Sum", (normal(4, 3),)),
    Record("Sum", tuple(normal(2) for _ in range(16))),
    Record("Mean", (normal(4, 3), normal(3), normal(4, 1))),
    Record("Max", (distinct(4, 3), within(-0.97, -0.93, 3))),
    Record("Max", (distinct(4, 3), np.array([0.21, 0.47, -0.3]), np.array(0.09))),
    Record("Min", (distinct(4, 3), np.array([0.21, 0.47, -0.3]))),
    Record("Min", (distinct(4, 3),)),
    Record("Clip", (away(4, 3, points=(-1.0, 1.0)), np.array(-1.0), np.array(1.0))),
    Record("Clip", (away(4, 3, points=(0.5,)), None, np.array(0.5))),
    Record("Clip", (away(4, 3, points=(0.5,)), np.array(0.5)), constants=(1,)),
    # lower bound above the upper one, in both forms of the rule
    Record("Clip", (away(4, 3, points=(0.5, 1.0)), np.array(1.0), np.array(0.5))),
    Record("Clip", (away(4, 3, points=(0.5, 1.0)), np.array(1.0), np.array(0.5)), constants=(1, 2)),
    Record("Where", (ones_like_mask(4, 3), normal(4, 3), normal(4, 3))),
    Record("Where", (ones_like_mask(4, 1), normal(3), normal(4, 3))),
    Record("Where", (ones_like_mask(4, 3), normal(), normal(1, 3))),
    Record("Cast", (normal(4, 3),), {"to": 11}),
    Record("CastLike", (normal(4, 3), np.zeros(1)), opsets=(15, 18, 21), wrt=(0,)),
]

FUNCTIONS = [
    *unary("Sin Cos Atan Sinh Cosh Asinh Erf Tanh Sigmoid Softplus", normal(4, 3)),
    Record("Tan", (within(-1.2, 1.2, 4, 3),)),
    *unary("Asin Acos Atanh", within(-0.9, 0.9, 4, 3)),
    Record("Acosh", (within(1.2, 3.0, 4, 3),)),
    Record("Softsign", (away(4, 3),)),
]

ACTIVATIONS = [
    *unary("Relu Elu Selu LeakyRelu", away(4, 3)),
    Record("LeakyRelu", (away(4, 3),), {"alpha": 0.25}),
    Record("Elu", (away(4, 3),), {"alpha": 0.5}),
    Record("Celu", (away(4, 3),), single=True),
    Record("Celu", (away(4, 3),), {"alpha": 0.5}, single=True),
    Record("Selu", (away(4, 3),), {"alpha": 1.5, "gamma": 0.5}),
    Record("PRelu", (away(4, 3), normal(3))),
    Record("PRelu", (away(2, 4, 3), normal(4, 1))),
    Record("ThresholdedRelu", (away(4, 3, points=(0.5,)),), {"alpha": 0.5}),
    Record("Shrink", (away(4, 3, points=(-0.5, 0.5)),)),
    Record("HardSigmoid", (away(4, 3, points=(-2.5, 2.5)),)),
    Record("HardSigmoid", (away(4, 3, points=(-1.0, 1.0)),), {"alpha": 0.5, "beta": 0.5}),
    Record("HardSwish", (away(4, 5, points=(-3.0, 3.0), scale=4.0),), opsets=(14, 18, 21)),
    Record("Mish", (normal(4, 3),), opsets=(18, 21)),
    Record("Gelu", (normal(4, 3),), opsets=(20, 21)),
    Record("Gelu", (normal(4, 3),), {"approximate": "tanh"}, opsets=(20, 21)),
    *(
        Record(name, (normal(*shape),), attributes)
        for name in ("Softmax", "LogSoftmax")
        for shape, attributes in (((4, 3), {}), ((4, 3), {"axis": 0}), ((2, 3, 4), {"axis": 1}))
    ),
]
