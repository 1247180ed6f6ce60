"""Records of operators that reduce axes: reductions, normalizations, losses and pooling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.differentiation.records_base import ALL, NEWEST, Record, away, distinct, ints, normal, positive

__all__ = ["LOSSES", "NORMALIZATION", "POOLING", "REDUCTIONS"]

# Axes are an attribute, or an input in later versions.
_AXES = (None, [0], [1], [-1], [0, 2], [1, -1])


def reductions(name: str, draw: Callable, since_input: int, **options) -> list[Record]:
    """Return records with all pairs of operator, axes and keepdims."""
    records = []
    for keepdims, axes in enumerate(_AXES, start=len(name)):
        kept = {"keepdims": keepdims % 2}
        old = kept | ({} if axes is None else {"axes": axes})
        new = () if axes is None else (ints(*axes),)
        if since_input > 13:
            records.append(Record(name, (draw,), old, opsets=(13,), **options))
        opsets = tuple(v for v in ALL if v >= since_input)
        records.append(Record(name, (draw, *new), kept, opsets=opsets, constants=(1,), **options))
    return records


REDUCTIONS = [
    *reductions("ReduceSum", normal(2, 3, 4), 13),
    *reductions("ReduceMean", normal(2, 3, 4), 18),
    *reductions("ReduceSumSquare", normal(2, 3, 4), 18),
    *reductions("ReduceL1", away(2, 3, 4), 18),
    *reductions("ReduceL2", normal(2, 3, 4), 18),
    *reductions("ReduceLogSum", positive(2, 3, 4), 18),
    *reductions("ReduceLogSumExp", normal(2, 3, 4), 18, empty=False),
    *reductions("ReduceMax", distinct(2, 3, 4), 18, empty=False),
    *reductions("ReduceMin", distinct(2, 3, 4), 18, empty=False),
    *reductions("ReduceProd", positive(2, 3, 4), 18),
    # axes known at run time only
    *(Record(name, (positive(2, 3, 4), ints(1, 2))) for name in ("ReduceSum",)),
    *(
        Record(name, (distinct(2, 3, 4), ints(1, 2)), {"keepdims": 0}, opsets=(18, 21), empty=False)
        for name in ("ReduceSum", "ReduceMean", "ReduceL2", "ReduceMax", "ReduceProd")
    ),
    # no axes mean all axes
    *(
        Record(name, (normal(2, 3, 4), ints()), {"keepdims": keepdims}, opsets=(18, 21), empty=False)
        for name in ("ReduceSum", "ReduceMean", "ReduceSumSquare")
        for keepdims in (0, 1)
    ),
    Record("ReduceSum", (normal(2, 3), ints()), {"noop_with_empty_axes": 1}, constants=(1,)),
    Record(
        "ReduceProd",
        (np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]), ints(1)),
        opsets=(18, 21),
        constants=(1,),
        second=False,
        empty=False,
    ),  # fmt: skip
    *(
        Record("CumSum", (normal(4, 3), np.array(axis)), {"exclusive": exclusive, "reverse": reverse})
        for axis in (0, -1)
        for exclusive in (0, 1)
        for reverse in (0, 1)
    ),
    *(
        Record("CumProd", (draw, np.array(axis)), {"exclusive": exclusive, "reverse": reverse}, **NEWEST)
        for axis, draw in ((0, away(4, 3)), (-1, positive(4, 3)))
        for exclusive in (0, 1)
        for reverse in (0, 1)
    ),
    # one zero and several zeros in a product, first and last
    *(
        Record(
            "CumProd",
            (np.array([[2.0, 0.0, 3.0, 0.5], [0.0, 1.5, 0.0, 2.0], [1.5, 2.0, 0.5, 0.0]]), np.array(1)),
            {"exclusive": exclusive, "reverse": reverse},
            second=False,
            **NEWEST,
        )  # fmt: skip
        for exclusive in (0, 1)
        for reverse in (0, 1)
    ),
    Record(
        "TopK", (distinct(4, 5), ints(2)), n_outputs=2, constants=(1,), empty=False
    ),  # fmt: skip  onnxruntime 1.19 stops the process on no rows
    Record(
        "TopK", (distinct(4, 5), ints(2)), {"axis": 0, "largest": 0}, n_outputs=2, constants=(1,), empty=False
    ),  # fmt: skip
]

NORMALIZATION = [
    Record("Dropout", (normal(4, 3),)),
    Record("Dropout", (normal(4, 3), np.array(0.3), np.array(False)), wrt=(0,), constants=(1, 2)),
    Record(
        "BatchNormalization",
        (normal(4, 3), positive(3), normal(3), normal(3), positive(3)),
        opsets=(14, 18, 21),
    ),  # fmt: skip
    Record(
        "BatchNormalization",
        (normal(4, 3, 2, 2), positive(3), normal(3), normal(3), positive(3)),
        {"epsilon": 0.1},
        opsets=(14, 18, 21),
        empty=False,
    ),  # fmt: skip
    Record("LayerNormalization", (normal(4, 3), normal(3), normal(3)), opsets=(17, 18, 21)),
    Record("LayerNormalization", (normal(4, 2, 3), normal(2, 3)), {"axis": 1}, opsets=(17, 18, 21)),
    Record(
        "LayerNormalization",
        (normal(4, 3), normal(3), normal(3)),
        {"epsilon": 0.1},
        n_outputs=3,
        opsets=(17, 21),
        single=True,
        empty=False,
    ),  # fmt: skip
    Record("InstanceNormalization", (normal(2, 3, 4), normal(3), normal(3)), empty=False),
    Record(
        "InstanceNormalization", (normal(2, 3, 2, 4), normal(3), normal(3)), {"epsilon": 0.1}, empty=False
    ),
    Record("LpNormalization", (normal(4, 3),)),
    Record("LpNormalization", (away(4, 3),), {"p": 1, "axis": 0}, empty=False),
]

LOSSES = [
    *(
        Record(
            "SoftmaxCrossEntropyLoss",
            (normal(4, 3), ints(0, 2, 1, 1), *weights),
            {"reduction": how, **ignored},
            empty=False,
        )
        for how in ("mean", "sum", "none")
        for weights in ((), (positive(3),))
        for ignored in ({}, {"ignore_index": 2})
    ),
    Record(
        "SoftmaxCrossEntropyLoss",
        (normal(4, 3), ints(0, 2, -1, 1)),
        {"ignore_index": -1},
        n_outputs=2,
        empty=False,
    ),  # fmt: skip
    *(
        Record(
            "SoftmaxCrossEntropyLoss",
            (normal(2, 3, 4), np.array([[0, 2, 1, 1], [2, 1, 0, 0]]), *weights),
            {"reduction": how},
            n_outputs=2,
            empty=False,
        )
        for how in ("mean", "none")
        for weights in ((), (positive(3),))
    ),
]

POOLING = [
    Record("GlobalAveragePool", (normal(2, 3, 4, 5),), empty=False),
    Record("GlobalMaxPool", (distinct(2, 3, 4),), empty=False),
    *(
        Record("AveragePool", (normal(*x),), attributes, empty=False, opsets=opsets)
        for x, attributes, opsets in (
            ((2, 3, 7), {"kernel_shape": [3]}, ALL),
            ((2, 3, 6, 5), {"kernel_shape": [2, 3], "strides": [2, 2]}, ALL),
            ((2, 3, 6, 5), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 1]}, ALL),
            ((2, 3, 6, 5), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}, ALL),
            ((2, 3, 6, 5), {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, (19, 21)),
            ((2, 3, 7, 6), {"kernel_shape": [2, 2], "dilations": [2, 2]}, (19, 21)),
        )
    ),
    # onnxruntime counts differently here, and has a float32 kernel only
    *(
        Record(
            "AveragePool",
            (normal(2, 3, *size),),
            {"kernel_shape": [3, 2], "strides": [2, 3], "pads": pads, "ceil_mode": 1, **count},
            empty=False,
            single=True,
        )
        for size, pads in (
            ((6, 5), [0, 0, 0, 0]),
            ((5, 6), [1, 1, 1, 1]),
            ((5, 6), [0, 1, 1, 0]),
            ((4, 7), [0, 1, 1, 0]),
            ((4, 7), [0, 0, 0, 0]),
        )
        for count in ({}, {"count_include_pad": 1})
    ),
    *(
        Record("MaxPool", (distinct(*x),), attributes, empty=False, opsets=opsets)
        for x, attributes, opsets in (
            # The reference evaluator, required for opset 13, returns other indices for one dimension.
            ((2, 3, 7), {"kernel_shape": [3]}, (18, 21)),
            ((2, 3, 6, 5), {"kernel_shape": [2, 3], "strides": [2, 2]}, ALL),
            ((2, 3, 6, 5), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 1]}, ALL),
            ((2, 3, 6, 5), {"kernel_shape": [2, 2], "storage_order": 1}, (18, 21)),
        )
    ),
]
