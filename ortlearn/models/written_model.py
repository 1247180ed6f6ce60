"""ONNX models of estimators with definitions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..exceptions import ConversionError
from ..graphs import TensorType, make_value_info, prune
from .columns import Columns
from .fusion import ML_OPSET, FusedForm
from .parameters import Parameter
from .registry import no_fallback
from .scores import Scores
from .writer import OPSET, Members, ModelWriter, TextSteps

IR_VERSION = 8  # the first for this opset, so that older runtimes load the files


class TextOutputError(ConversionError):
    """Error for a transformer whose output is text."""


@dataclass(frozen=True)
class WrittenModel:
    """A graph for inference, with the outputs of a skl2onnx model, and its parameters."""

    model: ModelProto
    scores: Scores  # names of tensors in the graph
    parameters: dict[str, Parameter]  # by the name of their initializer
    fused: tuple[FusedForm, ...] = ()  # fused operators for inference
    members: tuple[Members, ...] = ()  # ensembles that predict a mean of members
    text_steps: tuple[TextSteps, ...] = ()  # steps that compute features of documents


def write_model(
    estimator: Any,
    inputs: Mapping[str, TensorType],
    dtype: Any = np.float32,
    link: str | None = None,
    front_dtype: Any = None,
    columns: Mapping[int, str] | None = None,
    undefined: Any = no_fallback,
) -> WrittenModel:
    """Return the graph of a fitted estimator.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    inputs : mapping of str to TensorType
        Inputs of the graph.
    dtype : dtype, default=numpy.float32
        Type of floats and parameters.
    link : {"identity", "log"}, default=None
        Link function from the predictions of a regressor to its scores; by default that of the estimator.
    front_dtype : dtype, default=None
        Type in the steps of a pipeline before the last one; ``dtype`` by default.
    columns : mapping of int to str, default=None
        Name of the input of each column of X; by default, X is a single input.
    undefined : callable, default=no_fallback
        Function of the writer, an estimator and the samples that appends the graph of an estimator without
        a definition and returns its scores; raises an error by default.

    Returns
    -------
    WrittenModel
        Graph and parameters.

    Raises
    ------
    ConversionError
        If the estimator cannot be written as ONNX.

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
    op = ModelWriter(dtype, inputs, front_dtype, undefined, link)
    scores = op.write(estimator, _samples(op, inputs, columns))
    if isinstance(scores.score, Columns):
        raise TextOutputError(f"{type(estimator).__name__} cannot be written as ONNX: its output is text.")
    if scores.task == "regression" and not scores.target_transformers:
        scores = scores.with_link(op, link)
    # a predictor has no transformed output, except as a step of a pipeline
    transformed = scores.transformed if scores.task in ("transformation", "unsupervised") else None
    scores = replace(scores, transformed=transformed, dtype=np.dtype(dtype))
    values = [value if isinstance(value, tuple) else (value,) for value in vars(scores).values()]
    tensors = {name for names in values for name in names if isinstance(name, str)}
    model = prune(_model(op, inputs, scores), keep=lambda node: not tensors.isdisjoint(node.output))
    read = {tensor.name for tensor in model.graph.initializer}
    parameters = {name: parameter for name, parameter in op.parameters.items() if name in read}
    declared = tuple(op.fused.values()), tuple(op.members), tuple(op.text_steps)
    return WrittenModel(model, scores, parameters, *declared)


def _samples(
    op: ModelWriter, inputs: Mapping[str, TensorType], columns: Mapping[int, str] | None
) -> str | Columns:
    """Return the samples as a numeric matrix, or as columns."""
    if columns is not None:
        return Columns(tuple(columns.get(position) for position in range(max(columns, default=-1) + 1)))
    name, known = next(iter(inputs.items()))
    if known.elem_type != TensorProto.STRING:
        return name
    width = 1 if known.shape is None else known.shape[-1]
    if width == 1:
        op.documents = Columns((name,))
        return op.documents
    assert isinstance(width, int)
    texts = (op.Gather(name, [i], axis=1) for i in range(width))
    return Columns(tuple(op.set_type(text, known.elem_type, (None, 1)) for text in texts))


def _model(op: ModelWriter, inputs: Mapping[str, TensorType], scores: Scores) -> ModelProto:
    """Return the model of all appended nodes, with outputs of the scores."""
    outputs = []
    for name, (tensor, known) in _outputs(op, scores).items():
        name = name if op.claim(name) else op.unique(name)  # a column of X may be called "label"
        op.node("Identity", tensor, outputs=[name])
        outputs.append(make_value_info(name, known))
    graph_inputs = [
        make_value_info(name, known._replace(shape=known.shape and ("N", *known.shape[1:])))
        for name, known in inputs.items()
    ]
    graph = helper.make_graph(op.nodes, "model", graph_inputs, outputs, op.initializers)
    versions = {**op.opsets, "": OPSET, **({"ai.onnx.ml": ML_OPSET} if "ai.onnx.ml" in op.opsets else {})}
    imports = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def _outputs(op: ModelWriter, scores: Scores) -> dict[str, tuple[str, TensorType]]:
    """Return the tensor and the type of each graph output, by name."""
    n, elem_type = op.sample_dim, helper.np_dtype_to_tensor_dtype(scores.dtype)
    matrix = TensorType(elem_type, (n, None))
    if scores.task in ("regression", "transformation"):
        known = op.shape(scores.predicted) or ()
        sizes = known[1:] if len(known) > 2 else (scores.n_outputs,)
        return {"variable": (scores.predicted, TensorType(elem_type, (n, *sizes)))}
    outputs = {}
    if scores.label is not None:
        shape = (n, len(scores.groups)) if scores.groups else (n,)
        outputs["label"] = scores.label, TensorType(_label_type(scores), shape)
    if isinstance(scores.probabilities, tuple):
        outputs |= {f"probabilities_{i}": (name, matrix) for i, name in enumerate(scores.probabilities)}
    elif scores.probabilities is not None:
        outputs["probabilities"] = scores.probabilities, matrix
    elif scores.likelihood is not None and scores.transformed is None:
        outputs["score_samples"] = scores.likelihood, TensorType(elem_type, (n, 1))
    else:
        outputs["scores"] = scores.transformed or scores.decision or scores.score, matrix
    return outputs


def _label_type(scores: Scores) -> int:
    is_list = isinstance(scores.classes, list)
    if scores.groups and not is_list:  # indicators of labels
        return TensorProto.INT64
    classes = scores.classes if is_list else [scores.classes]
    is_text = scores.classes is not None and any(np.asarray(c).dtype.kind in "OUS" for c in classes)
    return TensorProto.STRING if is_text else TensorProto.INT64
