"""Find what a graph must be trained on: the raw scores before sigmoid or softmax, or the prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto

from ..exceptions import ConversionError
from ..graphs import TensorType, initializer_arrays, node_inputs
from .simplify import skip_idle_nodes
from .weight_selection import Weight

__all__ = ["Head", "find_head"]

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


@dataclass(frozen=True)
class Head:
    """What is trained, and what comes after it.

    Attributes
    ----------
    task : {"regression", "classification"}
        Kind of the model.
    score : str
        Tensor that the loss compares with the labels, of shape (n, k).
    link : {"identity", "sigmoid", "softmax"}
        What turns scores into predictions or probabilities.
    n_outputs : int
        k.
    dtype : numpy.dtype
        Type of the scores.
    label, probabilities : str or None
        Outputs of a classifier.
    classes : ndarray or None
        Classes found in the graph of a classifier.
    """

    task: str
    score: str
    link: str
    n_outputs: int
    dtype: np.dtype
    label: str | None = None
    probabilities: str | None = None
    classes: np.ndarray | None = None


def find_head(
    model: ModelProto, types: Mapping[str, TensorType], weights: Mapping[str, Weight], task: str | None = None
) -> Head:
    """Return what to train of a graph.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph for inference.
    types : mapping of str to TensorType
        What is known of its tensors.
    weights : mapping of str to Weight
        Its weights.
    task : {"regression", "classification"}, default=None
        Kind of the model; by default a graph that has an output of labels (int64 or text) is a
        classifier.

    Returns
    -------
    Head
        Scores and what follows them.

    Raises
    ------
    ConversionError
        If the graph has no floating-point output of shape (rows, outputs).

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion import find_head, find_weights
    >>> from ortlearn.graphs import value_types
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (int64[N] label, float[N,2] p) <float[2,2] w = {1, 2, 3, 4}>
    ...     { z = MatMul (x, w) p = Softmax (z) label = ArgMax <axis = 1, keepdims = 0> (p) }''')
    >>> head = find_head(model, value_types(model), find_weights(model))
    >>> head.task, head.score, head.link, head.n_outputs
    ('classification', 'z', 'softmax', 2)
    """
    outputs = [value.name for value in model.graph.output]
    floats = [name for name in outputs if name in types and types[name].elem_type in FLOATS]
    labels = [name for name in outputs if name not in floats]
    if not floats:
        raise ConversionError(f"None of the outputs {outputs} is a floating-point tensor to train on.")
    if task is None:
        task = "classification" if labels else "regression"
    if task == "regression":
        return _head(task, skip_idle_nodes(model, floats[0], dict(types)), "identity", types)
    if len(floats) > 1 and labels:
        raise ConversionError(
            f"The classifier has several floating-point outputs, {floats}: give its probabilities as one "
            "output (skl2onnx: options={'zipmap': False})."
        )
    score, after = _raw_score(model, floats[0], weights)
    soft = any(kind in ("Softmax", "LogSoftmax") for kind in after) or (not labels and score == floats[0])
    link = "softmax" if soft and _n_columns(types.get(score)) != 1 else "sigmoid"
    label = labels[0] if labels else None
    classes = None if label is None else _classes(model, label)
    return _head(task, score, link, types, label=label, probabilities=floats[0], classes=classes)


def _n_columns(known: TensorType | None) -> object:
    return known.shape[-1] if known is not None and known.shape else None


def _head(task: str, score: str, link: str, types: Mapping[str, TensorType], **outputs) -> Head:
    known = types.get(score)
    if known is None or known.shape is None or len(known.shape) != 2 or not isinstance(known.shape[1], int):
        shape = None if known is None else known.shape
        raise ConversionError(
            f"Tensor {score!r} must have a shape (rows, k) with a known k to be trained, not {shape}."
        )
    dtype = np.dtype(np.float64 if known.elem_type == TensorProto.DOUBLE else np.float32)
    return Head(task, score, link, known.shape[1], dtype, **outputs)


def _raw_score(model: ModelProto, output: str, weights: Mapping[str, Weight]) -> tuple[str, list[str]]:
    """Return the output of the last node that reads a learned weight, and the operators after it."""
    learned = {name for name, weight in weights.items() if weight.learned}
    needed = {output}
    after: list[str] = []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            if learned.intersection(node_inputs(node)):
                return node.output[0], after
            after.append(node.op_type)
            needed |= node_inputs(node)
    return output, []


def _classes(model: ModelProto, label: str) -> np.ndarray | None:
    """Return the one-dimensional table of numbers or texts that the label is taken from."""
    arrays = initializer_arrays(model)
    needed = {label}
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            if node.op_type in ("ArrayFeatureExtractor", "Gather") and node.input[0] in arrays:
                classes = np.ravel(arrays[node.input[0]])
                texts = [c.decode() if isinstance(c, bytes) else c for c in classes]
                return np.asarray(texts) if classes.dtype.kind == "O" else classes
            needed |= node_inputs(node)
    return None
