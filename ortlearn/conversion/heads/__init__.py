"""Find what a graph must be trained on: the raw scores before sigmoid or softmax, or the prediction.

One file per kind of model; each has a function that reads the end of the graph, appends what is
missing, and returns a :class:`Head`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from onnx import ModelProto

from ...graphs import TensorType
from ..preparation.kinds import ModelKind
from ..weights.weight_selection import Weight
from .base import Head
from .classification import classification_head
from .graph_end import APPENDED, FLOATS, GraphEnd
from .links import LOWEST, raw_score
from .multilabel import multilabel_head
from .regression import regression_head, transformation_head
from .unsupervised import cluster_head, mixture_head, outlier_head

__all__ = ["APPENDED", "HEADS", "LOWEST", "Head", "attach_head"]

#: What makes the head of each kind of model.
HEADS: dict[str, Callable[[GraphEnd, ModelKind, Mapping[str, Weight]], Head]] = {
    "classification": classification_head,
    "clusters": cluster_head,
    "mixture": mixture_head,
    "multilabel": multilabel_head,
    "outliers": outlier_head,
    "regression": regression_head,
    "transformation": transformation_head,
}


def attach_head(
    model: ModelProto,
    types: Mapping[str, TensorType],
    weights: Mapping[str, Weight],
    kind: ModelKind | None = None,
) -> tuple[ModelProto, Head]:
    """Return what to train of a graph, and the graph with what that needs.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph for inference.
    types : mapping of str to TensorType
        What is known of its tensors.
    weights : mapping of str to Weight
        Its weights.
    kind : ModelKind, default=None
        What the model is for; by default a graph that has an output of labels (int64 or text) is a
        classifier, any other a regressor.

    Returns
    -------
    model : onnx.ModelProto
        Graph with the same outputs. Nodes that only training needs come last; a label that is not
        what scikit-learn predicts is computed anew.
    head : Head
        Scores and what follows them.

    Raises
    ------
    ConversionError
        If the graph has no floating-point output of shape (rows, outputs).

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion import attach_head, find_weights
    >>> from ortlearn.graphs import value_types
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (int64[N] label, float[N,2] p) <float[2,2] w = {1, 2, 3, 4}>
    ...     { z = MatMul (x, w) p = Softmax (z) label = ArgMax <axis = 1, keepdims = 0> (p) }''')
    >>> model, head = attach_head(model, value_types(model), find_weights(model))
    >>> head.task, head.score, head.link, head.n_outputs
    ('classification', 'z', 'softmax', 2)
    """
    end = GraphEnd(model, types)
    if kind is None or kind.kind is None:
        kind = _kind_of_graph(end)
    head = HEADS[str(kind.kind)](end, kind, weights)
    return end.result(), head


def _kind_of_graph(end: GraphEnd) -> ModelKind:
    """Return what a graph of unknown origin is for, as its outputs tell."""
    known = [end.type(name) for name in end.outputs]
    if all(k is not None and k.elem_type in FLOATS for k in known):
        return ModelKind("regression")
    columns = [end.width(name) or 0 for name in end.outputs]
    if len(columns) == 2 and columns[0] == columns[1] > 1:
        # A matrix of labels beside one of scores.
        return ModelKind("multilabel", np.arange(columns[0]), raw_score(end, end.outputs[1]) is not None)
    return ModelKind("classification")
