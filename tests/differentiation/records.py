"""Records of operators with a gradient rule, from which tests of the rules are generated."""

from __future__ import annotations

import numpy as np

from tests.differentiation.elementwise_records import ACTIVATIONS, ARITHMETIC, FUNCTIONS
from tests.differentiation.fused_records import ATTENTION, FUSED, MICROSOFT
from tests.differentiation.linear_algebra_records import CONVOLUTIONS, LINEAR_ALGEBRA
from tests.differentiation.records_base import ML, MS, Record, ints, normal
from tests.differentiation.recurrent_records import RECURRENT
from tests.differentiation.reduction_records import LOSSES, NORMALIZATION, POOLING, REDUCTIONS
from tests.differentiation.resampling_records import RESAMPLING
from tests.differentiation.shape_records import GATHER_SCATTER, SHAPES
from tests.differentiation.spatial_records import SPATIAL

# Rows with a positive largest value, and rows of negative values.
_ROWS = np.array([[1.0, -3.0, 2.0], [-1.0, -2.0, -3.5], [0.5, 2.5, -0.3], [0.9, 0.4, -1.3]])

FEATURES = [
    Record("ArrayFeatureExtractor", (normal(4, 3), ints(0, 2)), domain=ML, constants=(1,)),
    Record("ArrayFeatureExtractor", (normal(4, 3), ints(1)), domain=ML, constants=(1,)),
    Record(
        "Scaler", (normal(4, 3),), {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, -1.0]}, ML, single=True
    ),
    Record("Scaler", (normal(4, 3),), {"offset": [1.0], "scale": [0.5]}, ML, single=True),
    *(
        Record("Normalizer", (_ROWS,), {"norm": norm}, ML, single=True, empty=False)
        for norm in ("MAX", "L1", "L2")
    ),
    Record(
        "Imputer",
        (np.array([[1.0, np.nan, 2.0], [np.nan, 1.5, 2.5]]),),
        {"imputed_value_floats": [0.5, 1.5, 2.5], "replaced_value_float": np.nan},
        ML,
    ),  # fmt: skip
]

RECORDS = [
    *ARITHMETIC, *FUNCTIONS, *ACTIVATIONS, *LINEAR_ALGEBRA, *REDUCTIONS, *SHAPES, *GATHER_SCATTER,
    *NORMALIZATION, *LOSSES, *CONVOLUTIONS, *POOLING, *MICROSOFT, *FEATURES,
    *ATTENTION, *FUSED, *RECURRENT, *RESAMPLING, *SPATIAL,
]  # fmt: skip

#: Operators tested in other files; ReverseSequence has its rule in the example distribution.
ELSEWHERE = {
    ("", name)
    for name in """If Loop Scan QuantizeLinear DequantizeLinear MatMulInteger QLinearMatMul QLinearConv
        ConvInteger Upsample ReverseSequence""".split()
} | {
    (MS, name)
    for name in """QuantizeLinear DequantizeLinear MatMulIntegerToFloat MatMulNBits QLinearAdd QLinearMul
        QLinearSigmoid QLinearLeakyRelu""".split()
}
