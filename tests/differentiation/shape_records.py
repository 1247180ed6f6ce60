"""Records of operators that change shapes or select elements."""

from __future__ import annotations

import numpy as np

from tests.differentiation.records_base import NEWEST, Record, ints, normal, positive, within

__all__ = ["GATHER_SCATTER", "SHAPES"]

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
    Record("Gather", (normal(4, 3), ints(-1, 0)), {"axis": 0}, constants=(1,), empty=False),
    Record("Gather", (normal(2, 3, 2), ints(2, 0, 1)), {"axis": 1}, constants=(1,)),
    Record("Gather", (normal(4, 3), ints(0, 2, 2, -1)), {"axis": 0}, constants=(1,), empty=False),
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
    Record("SpaceToDepth", (normal(2, 3, 4, 4),), {"blocksize": 2, "mode": "CRD"}, **NEWEST),
    Record("TensorScatter", (normal(2, 5, 3), normal(2, 2, 3)), **NEWEST),
    Record("TensorScatter", (normal(2, 5, 3), normal(2, 2, 3), ints(0, 3)), **NEWEST),
    Record("TensorScatter", (normal(2, 2, 4), normal(2, 2, 2), ints(2, 0)), {"axis": -1}, **NEWEST),
    Record(
        "TensorScatter",
        (normal(2, 5, 2, 2), normal(2, 3, 2, 2), ints(9, 3)),
        {"axis": 1, "mode": "circular"},
        **NEWEST,
    ),  # fmt: skip
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
