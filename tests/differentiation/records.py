"""Records of operators with a gradient rule, from which tests of the rules are generated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.differentiation.fused_records import ATTENTION, FUSED
from tests.differentiation.records_base import (
    ALL,
    ML,
    MS,
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
from tests.differentiation.recurrent_records import RECURRENT
from tests.differentiation.resampling_records import RESAMPLING
from tests.differentiation.spatial_records import SPATIAL

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

LINEAR_ALGEBRA = [
    *(
        Record("MatMul", (normal(*left), normal(*right)), empty=len(left) > 1 and left[0] > 1)
        for left, right in (
            ((4, 3), (3, 2)),
            ((3,), (3,)),
            ((3,), (3, 2)),
            ((4, 3), (3,)),
            ((5, 4, 3), (3,)),
            ((3,), (5, 3, 2)),
            ((5, 4, 3), (5, 3, 2)),
            ((5, 4, 3), (3, 2)),
            ((4, 3), (5, 3, 2)),
            ((2, 1, 4, 3), (5, 3, 2)),
            ((1, 4, 3), (5, 3, 2)),
        )
    ),
    *(
        Record(
            "Gemm", (normal(*a), normal(*b), normal(*c)), {"transA": ta, "transB": tb, **scales}, empty=not ta
        )
        for (ta, a) in ((0, (4, 3)), (1, (3, 4)))
        for (tb, b) in ((0, (3, 2)), (1, (2, 3)))
        for c, scales in (((4, 2), {}), ((2,), {"alpha": 0.5, "beta": 2.0}))
    ),
    Record("Gemm", (normal(4, 3), normal(3, 2))),
    Record("Gemm", (normal(4, 3), normal(3, 2), normal()), {"alpha": -1.5}),
    Record("Gemm", (normal(4, 3), normal(3, 2), normal(4, 1))),
    *(
        Record("Einsum", tuple(normal(*shape) for shape in shapes), {"equation": equation}, empty=False)
        for equation, shapes in (
            ("ij,jk->ik", ((4, 3), (3, 2))),
            ("ij,jk", ((4, 3), (3, 2))),
            ("ij->ji", ((4, 3),)),
            ("ij->", ((4, 3),)),
            ("ij->i", ((4, 3),)),
            ("i,i->", ((4,), (4,))),
            ("i,j->ij", ((4,), (3,))),
            ("bij,bjk->bik", ((2, 4, 3), (2, 3, 5))),
            ("...ij,jk->...ik", ((2, 4, 3), (3, 2))),
            ("...ij,...jk->...ik", ((2, 1, 4, 3), (5, 3, 2))),
            ("ij,kl->il", ((4, 3), (2, 5))),
            ("bhid,bhjd->bhij", ((2, 3, 4, 5), (2, 3, 2, 5))),
            ("ij,jk,kl->il", ((4, 3), (3, 2), (2, 5))),
        )
    ),
    # repeated labels
    *(
        Record(
            "Einsum", tuple(normal(*s) for s in shapes), {"equation": equation}, symbolic=False, empty=False
        )
        for equation, shapes in (
            ("ii,i->i", ((3, 3), (3,))),
            ("iij->ij", ((3, 3, 2),)),
            ("iij->j", ((3, 3, 2),)),
            ("iii->i", ((3, 3, 3),)),
            ("ii,jj->ij", ((3, 3), (2, 2))),
            ("iji,j->i", ((3, 2, 3), (2,))),
        )
    ),
    Record("Einsum", (normal(3, 3),), {"equation": "ii->i"}, symbolic=False, empty=False),
    Record("Einsum", (normal(3, 3),), {"equation": "ii->"}, symbolic=False, empty=False),
]

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
    Record(
        "TopK", (distinct(4, 5), ints(2)), n_outputs=2, constants=(1,), empty=False
    ),  # fmt: skip  onnxruntime 1.19 stops the process on no rows
    Record(
        "TopK", (distinct(4, 5), ints(2)), {"axis": 0, "largest": 0}, n_outputs=2, constants=(1,), empty=False
    ),  # fmt: skip
]

SHAPES = [
    Record("Reshape", (normal(4, 6), ints(-1, 2, 3)), constants=(1,)),
    Record("Reshape", (normal(4, 6), ints(0, 3, 2)), constants=(1,)),
    Record("Reshape", (normal(4, 6), ints(8, 3)), empty=False),
    Record("Flatten", (normal(2, 3, 4),), empty=False),
    Record("Flatten", (normal(2, 3, 4),), {"axis": 0}),
    Record("Flatten", (normal(2, 3, 4),), {"axis": -1}, empty=False),
    Record("Transpose", (normal(2, 3, 4),)),
    Record("Transpose", (normal(2, 3, 4),), {"perm": [1, 2, 0]}),
    Record("Squeeze", (normal(4, 1, 3, 1), ints(1, -1)), constants=(1,)),
    Record("Squeeze", (normal(4, 1, 3, 1), ints(1))),
    Record("Squeeze", (normal(4, 1, 3, 1),), symbolic=False),
    Record("Unsqueeze", (normal(4, 3), ints(0, -1)), constants=(1,)),
    Record("Unsqueeze", (normal(4, 3), ints(1))),
    Record("Expand", (normal(4, 1, 3), ints(2, 4, 5, 3)), constants=(1,), empty=False),
    Record("Expand", (normal(3), ints(2, 3)), constants=(1,), empty=False),
    Record("Expand", (normal(1, 3), ints(4, 3)), empty=False),
    Record("Concat", (normal(4, 3), normal(4, 2)), {"axis": 1}),
    Record("Concat", (normal(4, 3), normal(2, 3), normal(1, 3)), {"axis": 0}, empty=False),
    Record("Concat", (normal(4, 3), normal(4, 2)), {"axis": -1}, wrt=(1,)),
    Record("Concat", (normal(4, 3),), {"axis": 1}),
    Record(
        "Split", (normal(4, 6), ints(2, 4)), {"axis": 1}, n_outputs=2, constants=(1,), empty=False
    ),  # fmt: skip  onnxruntime 1.19 stops the process on no rows
    Record("Split", (normal(4, 6),), {"axis": -1}, n_outputs=3, opsets=(13,)),
    Record("Split", (normal(4, 6),), {"axis": -1, "num_outputs": 3}, n_outputs=3, opsets=(18, 21)),
    Record("Split", (normal(4, 6), ints(6)), {"axis": 1}, n_outputs=1, constants=(1,)),
    *(
        Record("Slice", (normal(4, 6), ints(*starts), ints(*ends), *more), constants=constants, empty=False)
        for starts, ends, more in (
            ((1,), (3,), (ints(1),)),
            ((1, 0), (3, -2), ()),
            ((-3,), (2**31,), (ints(-1),)),
            ((5, 0), (0, 9), (ints(1, 0), ints(-2, 1))),
            ((0,), (4,), (ints(1), ints(2))),
        )
        for constants in ((1, 2, 3, 4), ())
    ),
    Record("Pad", (normal(4, 3), ints(0, 1, 2, 0)), constants=(1,)),
    Record("Pad", (normal(4, 3), ints(0, 1, 2, 0), np.array(0.5)), constants=(1,), empty=False),
    Record("Pad", (normal(4, 3), ints(0, 1, 2, 0)), empty=False),
    Record("Pad", (normal(4, 3), ints(1, 2), None, ints(1)), opsets=(18, 21), constants=(1, 3)),
    Record("Pad", (normal(4, 3), ints(0, 1, 2, 0)), {"mode": "reflect"}, constants=(1,), empty=False),
    Record("Pad", (normal(4, 3), ints(0, 1, 2, 0)), {"mode": "edge"}, constants=(1,), empty=False),
    Record("Tile", (normal(4, 3), ints(2, 3)), constants=(1,)),
    Record("Tile", (normal(4, 3), ints(1, 2)), empty=False),
    Record("Trilu", (normal(2, 4, 4),), opsets=(14, 18, 21)),
    Record(
        "Trilu",
        (normal(4, 4), np.array(1)),
        {"upper": 0},
        constants=(1,),
        opsets=(14, 18, 21),
        symbolic=False,
    ),
    Record("DepthToSpace", (normal(2, 8, 2, 3),), {"blocksize": 2}, empty=False),
    Record("DepthToSpace", (normal(2, 8, 2, 3),), {"blocksize": 2, "mode": "CRD"}, empty=False),
    Record("SpaceToDepth", (normal(2, 2, 4, 6),), {"blocksize": 2}, empty=False),
]

GATHER_SCATTER = [
    Record("Gather", (normal(4, 3), ints(0, 2, 2, -1)), {"axis": 0}, empty=False),
    Record("Gather", (normal(4, 3), np.array([[0, 2], [2, -1]])), {"axis": 0}, empty=False),
    Record("Gather", (normal(4, 3), np.array([[0, 2], [2, -1]])), {"axis": 1}, symbolic=False),
    Record("Gather", (normal(5, 3), ints(0, 2, 2)), {"axis": -1}, constants=(1,)),
    Record("Gather", (normal(4, 3), np.array(1)), {"axis": 1}, constants=(1,)),
    Record("Gather", (normal(4, 3), ints(-1)), {"axis": 1}, constants=(1,)),
    Record("Gather", (normal(4, 3), np.array([[1]])), {"axis": 1}, constants=(1,)),
    Record("Gather", (normal(4, 3), np.array(2)), {"axis": 0}, empty=False),
    Record("Gather", (normal(2, 4, 3), np.array([[0, 2], [2, 1]])), {"axis": 1}, constants=(1,)),
    Record(
        "Gather",
        (
            normal(
                6,
            ),
            ints(0, 2, 2),
        ),
        {"axis": 0},
        empty=False,
    ),
    *(
        Record("Compress", (normal(4, 3), np.array(condition)), attributes, symbolic=False, empty=False)
        for condition, attributes in (
            ([True, False, True, True, False], {}),
            ([True, False, False, True], {"axis": 0}),
            ([False, True], {"axis": 1}),
        )
    ),
    Record("GatherElements", (normal(4, 3), np.array([[0, 1, 2], [3, 3, 0]])), {"axis": 0}, empty=False),
    Record("GatherElements", (normal(4, 3), np.array([[0, 1], [2, 2], [0, -1], [1, 1]])), {"axis": 1}),
    Record("GatherElements", (normal(4, 3), np.array([[0, 1], [2, 2]])), {"axis": 1}, empty=False),
    Record("GatherND", (normal(4, 3), np.array([[0, 1], [3, 2], [0, 1]])), empty=False),
    Record("GatherND", (normal(4, 3), np.array([[0], [3], [0], [-1]])), symbolic=False, empty=False),
    Record(
        "GatherND", (normal(2, 4, 3), np.array([[1], [3]])), {"batch_dims": 1}, symbolic=False, empty=False
    ),  # fmt: skip
    Record(
        "GatherND",
        (normal(2, 2, 4, 3), np.array([[[1], [3]], [[0], [0]]])),
        {"batch_dims": 2},
        symbolic=False,
        empty=False,
    ),  # fmt: skip
    Record("ScatterElements", (normal(4, 3), np.array([[0, 1, 2]]), normal(1, 3)), {"axis": 0}, empty=False),
    Record("ScatterElements", (normal(4, 3), np.array([[0], [1], [-1], [1]]), normal(4, 1)), {"axis": 1}),
    *(
        Record(
            "ScatterElements",
            (positive(4, 3), np.array([[0, 1, 2], [0, 1, 3]]), within(0.3, 2.5, 2, 3)),
            {"axis": 0, "reduction": how},
            opsets=opsets,
            empty=False,
        )  # fmt: skip
        for how, opsets in (("add", (16, 18)), ("mul", (16, 18)), ("max", (18,)), ("min", (18,)))
    ),
    # one and two zero factors of an element
    Record(
        "ScatterElements",
        (positive(4), ints(0, 0, 1, 1, 2, 3), np.array([0.0, 2.0, 0.0, 0.0, 0.5, 0.0])),
        {"reduction": "mul"},
        opsets=(16, 18),
        empty=False,
        second=False,
    ),  # fmt: skip
    Record(
        "ScatterND",
        (positive(3, 2), np.array([[0], [2], [0]]), np.array([[0.0, 0.0], [0.5, 0.0], [2.0, 0.0]])),
        {"reduction": "mul"},
        opsets=(16, 18),
        empty=False,
        second=False,
    ),  # fmt: skip
    *(
        Record("OneHot", (indices, np.array(depth), normal(2)), attributes, symbolic=False)
        for indices, depth, attributes in (
            (ints(0, 2, -1, 7), 3, {}),
            (np.array([[0, 1], [2, -2]]), 3, {"axis": 0}),
            (np.array([[0, 1], [2, -2]]), 3, {"axis": 1}),
            (ints(1, 0), 4, {"axis": -2}),
        )
    ),
    Record("ScatterND", (normal(4, 3), np.array([[0], [2]]), normal(2, 3)), empty=False),
    Record("ScatterND", (normal(4, 3), np.array([[0, 1], [2, -1]]), normal(2)), empty=False),
    *(
        Record(
            "ScatterND",
            (positive(4, 3), np.array([[0], [2], [0]]), within(0.3, 2.5, 3, 3)),
            {"reduction": how},
            opsets=opsets,
            empty=False,
        )  # fmt: skip
        for how, opsets in (("add", (16, 18)), ("mul", (16, 18)), ("max", (18,)), ("min", (18,)))
    ),
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

CONVOLUTIONS = [
    *(
        Record("Conv", (normal(*x), normal(*w), normal(w[0])), attributes, empty=False)
        for x, w, attributes in (
            ((2, 3, 7), (4, 3, 3), {}),
            ((2, 3, 5, 6), (4, 3, 3, 2), {"pads": [1, 0, 1, 1]}),
            ((2, 3, 7, 8), (4, 3, 3, 2), {"strides": [2, 3]}),
            ((2, 3, 7, 8), (4, 3, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
            ((2, 3, 8, 8), (4, 3, 2, 2), {"dilations": [2, 3], "pads": [0, 1, 2, 1]}),
            ((2, 3, 9, 8), (4, 3, 3, 2), {"dilations": [2, 1], "strides": [2, 2]}),
            ((2, 4, 6, 5), (6, 2, 3, 2), {"group": 2, "pads": [1, 1, 0, 0]}),
            ((2, 4, 6, 5), (4, 1, 3, 2), {"group": 4, "strides": [2, 1]}),
            ((2, 3, 5, 6), (4, 3, 3, 2), {"auto_pad": "SAME_UPPER"}),
            ((2, 3, 5, 6), (4, 3, 3, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
        )
    ),
    Record("Conv", (normal(2, 3, 7), normal(4, 3, 3)), empty=False),
    *(
        Record(
            "ConvTranspose",
            (normal(*x), normal(*w), normal(w[1] * attributes.get("group", 1))),
            attributes,
            empty=False,
        )  # fmt: skip
        for x, w, attributes in (
            ((2, 3, 5), (3, 4, 3), {}),
            ((2, 3, 4, 5), (3, 4, 3, 2), {"strides": [2, 3]}),
            ((2, 3, 4, 5), (3, 4, 3, 2), {"strides": [2, 2], "pads": [1, 0, 1, 1], "output_padding": [1, 0]}),
            ((2, 3, 4, 5), (3, 4, 3, 2), {"dilations": [2, 2]}),
            ((2, 4, 4, 5), (4, 3, 3, 2), {"group": 2}),
        )
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

MICROSOFT = [
    Record("Gelu", (normal(4, 3),), domain=MS, opsets=(13, 18)),
    Record(
        "CDist", (normal(4, 3), normal(5, 3)), {"metric": "sqeuclidean"}, MS, opsets=(13, 18), empty=False
    ),
    Record("CDist", (normal(4, 3), normal(5, 3)), {"metric": "euclidean"}, MS, opsets=(13, 18), empty=False),
    *(
        Record(
            "FusedMatMul",
            (normal(*a), normal(*b)),
            {"transA": ta, "transB": tb, "alpha": alpha},
            MS,
            opsets=(13, 18),
        )  # fmt: skip
        for a, b, ta, tb, alpha in (
            ((4, 3), (3, 2), 0, 0, 0.5),
            ((3, 4), (3, 2), 1, 0, 1.0),
            ((4, 3), (2, 3), 0, 1, 1.0),
            ((5, 3, 4), (5, 2, 3), 1, 1, 2.0),
        )
    ),
]

# Rows with the largest value positive, and with all values negative.
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
