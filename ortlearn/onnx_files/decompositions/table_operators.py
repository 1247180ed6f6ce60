"""Operators that choose or join columns, or look values up."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from .common import Fused

__all__ = ["array_feature_extractor", "feature_vectorizer", "label_encoder"]


def array_feature_extractor(fused: Fused) -> bool:
    """Write a choice of columns; the numbers of the columns count as one list, whatever their shape.

    A vector gives a tensor of one row.
    """
    x, columns = fused.node.input
    op = fused.op
    shape, places = op.shape(x), op.shape(columns)
    if shape is None:
        return False
    if places is None or len(places) != 1:
        columns = op.Reshape(columns, [-1])
    if len(shape) == 1:
        fused.write("Unsqueeze", op.Gather(x, columns, axis=0), [0])
    else:
        fused.write("Gather", x, columns, axis=-1)
    return True


def feature_vectorizer(fused: Fused) -> bool:
    """Write columns put side by side; False unless each tensor has as many as are declared for it."""
    op = fused.op
    sizes = list(fused.attribute("inputdimensions", []))
    shapes = [op.shape(name) for name in fused.node.input]
    if [shape[1] if shape is not None and len(shape) == 2 else None for shape in shapes] != sizes:
        return False
    floats = [fused.float_input(index) for index in range(len(sizes))]
    fused.write("Concat", *floats, axis=1)
    rows = (shapes[0] or (None,))[0]
    fused.note_output((rows, sum(sizes)))
    return True


ML = "ai.onnx.ml"


def label_encoder(fused: Fused) -> bool:
    """Write an encoder to numbers as a table; its last entry is for values that are no keys."""
    values = _values(fused)
    keys = _keys(fused)
    if values is None or keys is None:
        return False
    op, (name, labels) = fused.op, keys
    places = op.node(
        "LabelEncoder",
        fused.node.input[0],
        domain=ML,
        values_int64s=list(range(len(values) - 1)),
        default_int64=len(values) - 1,
        **{name: labels},
    )
    fused.write("Gather", fused.weight("table", values), places, axis=0)
    return True


def _values(fused: Fused) -> np.ndarray | None:
    """Return the values and the default one, None where they are no floats."""
    values = fused.attribute("values_floats", None)
    default = fused.attribute("default_float", -0.0)
    tensor = fused.attribute("values_tensor", None)
    if tensor is not None:
        values = numpy_helper.to_array(tensor)
        if values.dtype.kind != "f":
            return None
        given = fused.attribute("default_tensor", None)
        default = 0.0 if given is None else numpy_helper.to_array(given).ravel()[0]
    if values is None or not len(values):
        return None
    dtype = np.float32 if tensor is None else values.dtype
    return np.append(np.asarray(values, dtype=dtype), np.asarray(default, dtype=dtype))


def _keys(fused: Fused) -> tuple[str, Any] | None:
    """Return the attribute of the keys and its value."""
    for name in ("keys_strings", "keys_int64s", "keys_floats"):
        if fused.attribute(name, None):
            return name, fused.attribute(name)
    tensor = fused.attribute("keys_tensor", None)
    kinds = {
        TensorProto.STRING: "keys_strings",
        TensorProto.INT64: "keys_int64s",
        TensorProto.FLOAT: "keys_floats",
    }
    if tensor is None or tensor.data_type not in kinds:
        return None
    return kinds[tensor.data_type], numpy_helper.to_array(tensor).tolist()
