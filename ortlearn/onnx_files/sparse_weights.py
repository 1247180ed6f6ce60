"""Sparse initializers, which are stored as values and positions."""

import math

import numpy as np
from onnx import ModelProto, SparseTensorProto, numpy_helper

from ..exceptions import ConversionError
from ..graphs import copy_model

#: Largest number of elements of a dense weight.
LARGEST = 2**28


def with_dense_weights(model: ModelProto) -> ModelProto:
    """Return a model with sparse initializers replaced by dense ones."""
    if not model.graph.sparse_initializer:
        return model
    result = copy_model(model)
    del result.graph.sparse_initializer[:]
    result.graph.initializer.extend(
        numpy_helper.from_array(_dense(tensor), tensor.values.name)
        for tensor in model.graph.sparse_initializer
    )
    return result


def _dense(tensor: SparseTensorProto) -> np.ndarray:
    """Return the array of a sparse tensor, whose positions are flat or one row per value."""
    shape, name = tuple(tensor.dims), tensor.values.name
    values, positions = numpy_helper.to_array(tensor.values), numpy_helper.to_array(tensor.indices)
    if min(shape, default=1) < 0 or math.prod(shape) > LARGEST:
        raise ConversionError(
            f"The sparse initializer {name!r} has the shape {shape}, and weights have up to {LARGEST} "
            "elements: make it an input of the model."
        )
    if positions.ndim == 2 and positions.shape[1:] == (len(shape),):
        inside = ((positions >= 0) & (positions < np.array(shape))).all()
        positions = np.ravel_multi_index(tuple(positions.T), shape) if inside else np.array([-1])
    dense = np.zeros(math.prod(shape), values.dtype)
    if positions.shape != values.shape or np.any((positions < 0) | (positions >= dense.size)):
        raise ConversionError(
            f"The sparse initializer {name!r} has positions outside of its shape {shape}: export the model "
            "again."
        )
    dense[positions] = values
    return dense.reshape(shape)
