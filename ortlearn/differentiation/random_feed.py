"""Random inputs of a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from ..graphs import value_types

__all__ = ["random_feed"]

_ORT_TYPES = {
    "tensor(float)": TensorProto.FLOAT,
    "tensor(double)": TensorProto.DOUBLE,
    "tensor(float16)": TensorProto.FLOAT16,
    "tensor(int64)": TensorProto.INT64,
    "tensor(int32)": TensorProto.INT32,
    "tensor(int8)": TensorProto.INT8,
    "tensor(uint8)": TensorProto.UINT8,
    "tensor(bool)": TensorProto.BOOL,
    "tensor(string)": TensorProto.STRING,
}


def random_feed(
    inputs: ModelProto | Iterable[Any],
    batch: int = 10,
    empty_dimension: int = 1,
    random_state: int | None = 0,
) -> dict[str, np.ndarray]:
    """Draw a value for every input of a model.

    Parameters
    ----------
    inputs : onnx.ModelProto or iterable
        Model, its inputs (``onnx.ValueInfoProto``), or those of an onnxruntime session.
    batch : int, default=10
        Size of a first dimension that is unknown or has a name.
    empty_dimension : int, default=1
        Size of any other dimension that is unknown or has a name.
    random_state : int or None, default=0
        Seed.

    Returns
    -------
    dict of str to ndarray
        Floats uniform between 0 and 1, integers 0 or 1, and text.

    Raises
    ------
    TypeError
        If an input is not a dense tensor.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.differentiation.random_feed import random_feed
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N, 3] x, int64[M, K] i) => (float[N, 3] y) { y = Exp (x) }''')
    >>> {name: (value.shape, str(value.dtype)) for name, value in random_feed(model).items()}
    {'x': ((10, 3), 'float32'), 'i': ((10, 1), 'int64')}
    """
    rng = np.random.default_rng(random_state)
    if isinstance(inputs, ModelProto):
        given = {tensor.name for tensor in inputs.graph.initializer}
        inputs = [value for value in inputs.graph.input if value.name not in given]
    feeds = {}
    for value in inputs:
        elem_type, dims = _describe(value)
        shape = [
            dim if isinstance(dim, int) else (empty_dimension if axis else batch)
            for axis, dim in enumerate(dims)
        ]
        feeds[value.name] = _draw(rng, elem_type, shape)
    return feeds


def _describe(value: Any) -> tuple[int, tuple]:
    """Return the element type and the dimensions of an input."""
    if isinstance(value, ValueInfoProto):
        graph = helper.make_graph([], "inputs", [value], [])
        known = value_types(helper.make_model(graph), infer=False).get(value.name)
        if known is not None:
            return known.elem_type, known.shape or ()
    elif getattr(value, "type", None) in _ORT_TYPES:
        return _ORT_TYPES[value.type], tuple(value.shape)
    raise TypeError(f"Input {value.name!r} is not a dense tensor: pass its value instead.")


def _draw(rng: np.random.Generator, elem_type: int, shape: list[int]) -> np.ndarray:
    if elem_type == TensorProto.STRING:
        return np.full(shape, "text", dtype=object)
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    if dtype.kind == "f":
        return np.asarray(rng.random(shape), dtype=dtype)
    return np.asarray(rng.integers(0, 2, size=shape), dtype=dtype)
