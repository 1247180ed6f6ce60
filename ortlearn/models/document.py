"""The ONNX model of an estimator, written by definitions alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..graphs import TensorType, make_value_info
from .parameters import Parameter
from .scores import Scores
from .writer import OPSET, ModelWriter

__all__ = ["WrittenModel", "write_model"]

#: Version of the ai.onnx.ml domain, where a graph uses it.
ML_OPSET = 3
#: Newest IR version that every supported onnxruntime reads.
IR_VERSION = 10


@dataclass(frozen=True)
class WrittenModel:
    """A graph with its parameters.

    Attributes
    ----------
    model : onnx.ModelProto
        Graph for inference; its outputs are those that skl2onnx gives such models.
    scores : Scores
        What it computes; each tensor is in the graph.
    parameters : dict of str to Parameter
        Parameters by the name of their initializer.
    """

    model: ModelProto
    scores: Scores
    parameters: dict[str, Parameter]


def write_model(
    estimator: Any, inputs: Mapping[str, TensorType], dtype: Any = np.float32, finish: Any = None
) -> WrittenModel:
    """Return the graph of a fitted estimator.

    Parameters
    ----------
    estimator : estimator
        Fitted; it and all estimators in it have definitions.
    inputs : mapping of str to TensorType
        Inputs of the graph.
    dtype : dtype, default=numpy.float32
        Type of numbers and parameters.
    finish : callable, default=None
        Takes the writer and the scores, and returns the scores with what comes after the model.

    Returns
    -------
    WrittenModel
        Graph and parameters.

    Raises
    ------
    ConversionError
        If the estimator has no form in ONNX.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.graphs import TensorType
    >>> from ortlearn.models import write_model
    >>> model = Ridge().fit([[0.0], [1.0]], [1.0, 3.0])
    >>> written = write_model(model, {"X": TensorType(1, (None, 1))})
    >>> [node.op_type for node in written.model.graph.node]
    ['MatMul', 'Add', 'Identity']
    """
    op = ModelWriter(dtype, inputs)
    scores = op.write(estimator, next(iter(inputs)))
    if finish is not None:
        scores = finish(op, scores)
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    outputs = []
    for name, (tensor, known) in _outputs(scores, elem_type).items():
        op.node("Identity", tensor, outputs=[name])
        outputs.append(make_value_info(name, known))
    given = [make_value_info(name, _with_rows(known)) for name, known in inputs.items()]
    graph = helper.make_graph(op.nodes, "model", given, outputs, op.initializers)
    versions = {**op.opsets, "": OPSET}
    if "ai.onnx.ml" in versions:
        versions["ai.onnx.ml"] = ML_OPSET
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in versions.items()])
    model.ir_version = IR_VERSION
    return WrittenModel(model, scores, op.parameters)


def _with_rows(known: TensorType) -> TensorType:
    return known if known.shape is None else TensorType(known.elem_type, ("N", *known.shape[1:]))


def _outputs(scores: Scores, elem_type: int) -> dict[str, tuple[str, TensorType]]:
    """Return the tensor and the type of each output of a graph."""
    matrix = TensorType(elem_type, ("N", None))
    rows = ("N", len(scores.groups)) if scores.groups else ("N",)
    label = None if scores.label is None else (scores.label, TensorType(_label_type(scores), rows))
    if scores.task == "regression":
        return {"variable": (scores.predicted, TensorType(elem_type, ("N", scores.n_outputs)))}
    if scores.task == "transformation":
        return {"variable": (scores.score, TensorType(elem_type, ("N", scores.n_outputs)))}
    found = {} if label is None else {"label": label}
    if scores.joined is not None:
        return {**found, "probabilities": (scores.joined, TensorType(elem_type, (None, "N", None)))}
    values = scores.probabilities or scores.transformed or scores.decision or scores.score
    assert isinstance(values, str)
    return {**found, ("probabilities" if scores.probabilities else "scores"): (values, matrix)}


def _label_type(scores: Scores) -> int:
    if scores.classes is None or (scores.groups and not isinstance(scores.classes, list)):
        return TensorProto.INT64
    kind = np.asarray(scores.classes[0] if scores.groups else scores.classes).dtype.kind
    return TensorProto.STRING if kind in "OUS" else TensorProto.INT64
