"""Records of operators on images with float32 kernels only."""

from __future__ import annotations

import numpy as np

from tests.differentiation.records_base import Record, away, ints, normal, positive

__all__ = ["SPATIAL"]


def spatial(op_type, *inputs, opsets=(13, 18, 21), **options):
    """Return a record; further arguments are attributes."""
    known = {"n_outputs", "constants", "wrt", "second", "symbolic", "single", "kernel"}
    given = {name: options.pop(name) for name in known & options.keys()}
    chosen = {"single": True, "empty": False, **given}
    return Record(op_type, inputs, options, opsets=opsets, **chosen)


def grid(*shape):
    """Return positions in images of size 5, some outside, that keep their neighbours after small changes."""

    def draw(rng):
        found = rng.uniform(-1.6, 1.6, size=500 * int(np.prod(shape)))
        for t in (2.5 * found + 2, 2 * found + 2):  # without and with align_corners
            found = np.where(np.abs(2 * t - np.round(2 * t)) < 0.2, np.nan, found)
        return found[~np.isnan(found)][: int(np.prod(shape))].reshape(shape)

    return draw


SAMPLING = [
    spatial("AffineGrid", normal(2, 2, 3), ints(2, 1, 3, 4), opsets=(20, 21), wrt=(0,), constants=(1,)),
    spatial("AffineGrid", normal(2, 3, 4), ints(2, 1, 3, 4, 2), opsets=(20, 21), wrt=(0,), align_corners=1),
    *(
        spatial(
            "GridSample",
            normal(2, 2, 5, 5),
            grid(2, 3, 2, 2),
            mode=mode,
            padding_mode=padding,
            align_corners=a,
            opsets=(16, 18),
            second=False,
            **only,
        )
        for mode, only in (("bilinear", {}), ("nearest", {"wrt": (0,)}), ("bicubic", {}))
        for padding in ("zeros", "border", "reflection")
        for a in (0, 1)
    ),  # fmt: skip
    spatial("GridSample", normal(2, 2, 5, 5), grid(2, 3, 2, 2), mode="linear", opsets=(20, 21), second=False),
    Record(
        "GridSample",
        (normal(2, 2, 5, 5), grid(2, 3, 2, 2)),
        {"padding_mode": "border"},
        "com.microsoft",
        opsets=(13, 18),
        single=True,
        empty=False,
        second=False,
    ),
    spatial(
        "GridSample", normal(1, 2, 5, 5, 5), grid(1, 2, 3, 2, 3), mode="linear", opsets=(20, 21), second=False
    ),
    *(
        spatial(
            "RoiAlign",
            normal(2, 3, 6, 7),
            boxes,
            ints(1, 0, 1),
            wrt=(0,),
            output_height=2,
            output_width=3,
            spatial_scale=0.5,
            opsets=opsets,
            second=False,
            **extra,
        )
        for boxes in (np.array([[1.1, 2.3, 9.7, 8.9], [0.2, 0.4, 5.1, 11.9], [4.4, 3.3, 4.9, 14.6]]),)
        for opsets, extra in (
            ((13,), {"sampling_ratio": 2}),
            ((16, 18), {"sampling_ratio": 2}),
            ((16, 18), {}),
            ((16, 18), {"coordinate_transformation_mode": "output_half_pixel"}),
            ((13,), {"sampling_ratio": 2, "mode": "max"}),
            ((16, 18), {"sampling_ratio": 2, "mode": "max"}),
            ((16, 18), {"mode": "max"}),
        )
    ),  # fmt: skip
    *(  # regions without a point: their sizes are negative, or there is no region
        spatial(
            "RoiAlign",
            normal(1, 2, 4, 5),
            boxes,
            ints(*batch),
            opsets=(16, 18),
            wrt=(0,),
            mode=mode,
            second=False,
        )
        for boxes, batch in ((np.array([[3.0, 3.0, 1.0, 1.0]]), (0,)), (np.zeros((0, 4)), ()))
        for mode in ("avg", "max")
    ),
]

SPATIAL = [
    *(
        Record(
            "BatchNormalization",
            (normal(*shape), positive(3), normal(3), normal(3), positive(3)),
            {"training_mode": 1, "epsilon": 0.1, "momentum": 0.7},
            opsets=(14, 18, 21),
            n_outputs=outputs,
            empty=False,
        )
        for shape, outputs in (((4, 3), 3), ((4, 3, 2, 2), 1), ((2, 3, 5), 3))
    ),
    spatial("LRN", normal(2, 5, 3, 2), size=3, alpha=0.3, beta=0.6, bias=1.5),
    spatial("LRN", normal(2, 5, 3, 1), size=5, alpha=0.3),
    *(spatial("GlobalLpPool", away(2, 3, 4), p=p) for p in (1, 2, 3)),
    spatial("LpPool", away(2, 3, 7), kernel_shape=[3]),
    spatial("LpPool", away(2, 3, 6, 5), kernel_shape=[2, 3], strides=[2, 1], pads=[1, 0, 0, 1], p=3),
    spatial("LpPool", away(2, 3, 6, 5), kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER", p=1),
    spatial("LpPool", away(2, 3, 6, 5), kernel_shape=[2, 2], dilations=[2, 2], opsets=(18, 21)),
    spatial("MaxUnpool", normal(1, 2, 2, 2), ints(0, 7, 10, 13, 17, 18, 28, 31).reshape(1, 2, 2, 2),
            kernel_shape=[2, 2], strides=[2, 2], second=False),
    spatial("MaxUnpool", normal(1, 1, 2, 2), ints(5, 7, 13, 24).reshape(1, 1, 2, 2), ints(1, 1, 5, 5),
            kernel_shape=[2, 2], strides=[2, 2], constants=(2,), second=False),
    *SAMPLING,
]  # fmt: skip
