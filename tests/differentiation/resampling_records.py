"""Records of Resize."""

from __future__ import annotations

import numpy as np

from tests.differentiation.records_base import Record, ints, normal

__all__ = ["RESAMPLING"]


def resize(
    shape, *, scales=None, sizes=None, roi=None, opsets=(13, 18, 21), constants=(1, 2, 3), **attributes
):
    """Return the record of a Resize; onnxruntime has a kernel for float32 only."""
    inputs = [
        normal(*shape),
        roi and np.array(roi),
        scales and np.array(scales, np.float32),
        sizes and ints(*sizes),
    ]
    while inputs[-1] is None:
        inputs.pop()
    return Record(
        "Resize",
        tuple(inputs),
        attributes,
        opsets=opsets,
        constants=constants,
        wrt=(0,),
        single=True,
        empty=False,
    )


MODES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"]

RESAMPLING = [
    *(
        resize((2, 2, 4, 3), scales=scales, mode=mode, coordinate_transformation_mode=where, **extra)
        for where in MODES
        for mode, scales, extra in (
            ("nearest", (1, 1, 1.7, 2), {"nearest_mode": "floor"}),
            ("nearest", (1, 1, 0.6, 1.4), {"nearest_mode": "round_prefer_ceil"}),
            ("linear", (1, 1, 1.7, 0.7), {}),
            ("cubic", (1, 1, 1.7, 2), {"cubic_coeff_a": -0.5}),
        )
    ),
    *(
        resize((2, 2, 3, 4), scales=(1, 1, 2, 3), nearest_mode=how, coordinate_transformation_mode=where)
        for how in ("floor", "ceil", "round_prefer_floor")
        for where in ("asymmetric", "half_pixel")
    ),
    resize((2, 2, 4, 3), sizes=(2, 2, 7, 5), mode="linear"),
    resize((2, 2, 4, 3), sizes=(2, 2, 7, 5), mode="cubic", exclude_outside=1),
    resize((2, 2, 4, 3), sizes=(2, 2, 8, 6), mode="nearest"),
    resize((2, 2, 4, 3), sizes=(2, 2, 7, 5), mode="linear", constants=(1,)),
    resize((2, 2, 4, 3), scales=(1, 1, 1.3, 2), mode="nearest", constants=(1,)),
    resize((4, 3), scales=(1.5, 2), mode="linear"),
    resize((1, 2, 3, 4, 2), scales=(1, 1, 1.5, 1, 2), mode="linear"),
    resize((2, 4, 3), scales=(2, 1.5, 1), mode="nearest"),
    resize((1, 4, 3, 2), scales=(1, 1.5, 2, 1), mode="linear"),
    resize((2, 2, 4, 3), scales=(1.5, 2), axes=[2, 3], mode="linear", opsets=(18, 21)),
    resize((2, 2, 6, 5), scales=(1, 1, 0.5, 0.7), mode="linear", antialias=1, opsets=(18, 21)),
    resize((2, 2, 6, 5), scales=(1, 1, 0.5, 0.7), mode="cubic", antialias=1, opsets=(18, 21)),
    *(
        resize(
            (2, 2, 5, 4),
            sizes=(8, 7),
            axes=[2, 3],
            mode=mode,
            keep_aspect_ratio_policy=policy,
            coordinate_transformation_mode=where,
            opsets=(18, 21),
            **extra,
        )
        for policy in ("not_larger", "not_smaller")
        for mode, where, extra in (
            ("linear", "half_pixel", {}),
            ("linear", "align_corners", {}),
            ("cubic", "asymmetric", {}),
            ("nearest", "half_pixel", {}),
            ("linear", "half_pixel", {"constants": (1,)}),
        )
    ),
    resize((3, 4), sizes=(6, 9), mode="nearest", keep_aspect_ratio_policy="not_larger", opsets=(18, 21)),
    *(
        resize(
            (2, 2, 4, 3),
            roi=(0, 0, 0.2, 0.1, 1, 1, 0.7, 1.3),
            sizes=(2, 2, 3, 5),
            mode=mode,
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=3.5,
        )
        for mode in ("linear", "nearest")
    ),
    resize(
        (2, 2, 4, 3),
        scales=(1, 1, 1.7, 2),
        mode="linear",
        coordinate_transformation_mode="half_pixel_symmetric",
        opsets=(19, 21),
    ),
]
