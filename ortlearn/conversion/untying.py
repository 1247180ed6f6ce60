"""A copy of a weight for each layer and each step that reads it: skl2onnx stores equal initializers once."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

import numpy as np
from onnx import ModelProto

from ..graphs import copy_model, graph_names, initializer_arrays
from .weights.fitted_attributes import fitted_arrays

__all__ = ["untied"]

#: Operators of layers, which have weights of their own.
LAYERS = {"MatMul", "Gemm", "Add"}
#: Operators of scalers and the like. Formulas use them too, on one weight more than once.
SCALERS = {"Sub", "Mul", "Div"}


def untied(model: ModelProto, estimator: Any) -> ModelProto:
    """Return a model with a copy of a weight for each layer and step that reads it.

    Two layers whose intercepts happen to be equal, all zeros say, would else be trained as one, and so
    would the means of two steps that see the same columns.

    Parameters
    ----------
    model : onnx.ModelProto
        Converted estimator.
    estimator : estimator
        Fitted; it tells which numbers are there more than once.

    Returns
    -------
    onnx.ModelProto
        New model.
    """
    model = copy_model(model)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer if tensor.dims}
    shared = _of_several_steps(model, estimator)
    names, read = graph_names(model.graph), set()
    for node in model.graph.node:
        for position, name in enumerate(node.input):
            if node.op_type not in LAYERS and not (node.op_type in SCALERS and name in shared):
                continue
            if name in read:
                own = next(f"{name}_{i}" for i in count(1) if f"{name}_{i}" not in names)
                names.add(own)
                model.graph.initializer.add().CopyFrom(tensors[name])
                model.graph.initializer[-1].name = own
                node.input[position] = own
            elif name in tensors:
                read.add(name)
    return model


def _of_several_steps(model: ModelProto, estimator: Any) -> set[str]:
    """Return the initializers that hold an attribute of several steps before the last."""
    nodes = (node for node in model.graph.node if node.op_type in LAYERS | SCALERS)
    uses = Counter(name for node in nodes for name in node.input)
    vectors = {
        name: array.ravel()
        for name, array in initializer_arrays(model).items()
        if uses[name] > 1 and array.size > 1 and array.dtype.kind == "f"
    }
    if not vectors:
        return set()
    fitted = [array.values.ravel() for array in fitted_arrays(estimator) if not array.trained]
    return {
        name
        for name, vector in vectors.items()
        if sum(np.array_equal(values.astype(vector.dtype), vector) for values in fitted) > 1
    }
