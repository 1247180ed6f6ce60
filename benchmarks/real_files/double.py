"""Evaluate models in float64 by the reference implementation of onnx."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from ortlearn.graphs import copy_model
from ortlearn.graphs.nodes import all_nodes

__all__ = ["Evaluator", "in_double"]


class GlobalMaxPool(OpRun):
    """Maximum over all dimensions but the first two; that of onnx 1.22 is wrong."""

    op_domain = ""

    def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class Evaluator:
    """Model in float64, for which onnxruntime has no convolutions on the CPU.

    Parameters
    ----------
    model : ModelProto
        Model.
    """

    def __init__(self, model: ModelProto):
        self._evaluator = ReferenceEvaluator(_double_model(model), new_ops=[GlobalMaxPool])

    def run(self, outputs: list[str], feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Return outputs by name."""
        return self._evaluator.run(outputs, {name: in_double(array) for name, array in feed.items()})


def in_double(array: np.ndarray) -> np.ndarray:
    """Return a floating-point array in float64, other arrays unchanged."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _double_model(model: ModelProto) -> ModelProto:
    """Return a model with float32 converted to float64."""
    result = copy_model(model)
    del result.graph.value_info[:]
    tensors = list(result.graph.initializer)
    for node in all_nodes(result.graph):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                tensors.append(attribute.t)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
    for tensor in tensors:
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor).astype(float)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for value in [*result.graph.input, *result.graph.output]:
        kind = value.type.tensor_type
        if kind.elem_type == TensorProto.FLOAT:
            kind.elem_type = TensorProto.DOUBLE
    return result
