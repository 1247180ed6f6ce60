"""Find what an ONNX file must be trained on: the raw scores before sigmoid or softmax, or the prediction.

One file per kind of model; each has a function that reads the end of the graph, appends what is
missing, and returns the :class:`~ortlearn.models.Scores`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import ModelProto

from ...graphs import TensorType
from ...models import Scores
from ...models.weight import Weight
from .classification import classification_scores
from .graph_end import APPENDED, GraphEnd
from .links import raw_score
from .multilabel import multilabel_scores
from .outputs import Purpose, split_outputs
from .regression import regression_scores

__all__ = ["APPENDED", "attach_scores"]

#: What finds the scores of each kind of model.
FINDERS: dict[str, Callable[[GraphEnd, Purpose, Mapping[str, Weight]], Scores]] = {
    "classification": classification_scores,
    "multilabel": multilabel_scores,
    "regression": regression_scores,
}


def attach_scores(
    model: ModelProto,
    types: Mapping[str, TensorType],
    weights: Mapping[str, Weight],
    task: str | None = None,
    link: str = "identity",
) -> tuple[ModelProto, Scores]:
    """Return a graph with the nodes that its training needs, which come last, and its scores.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph for inference.
    types : mapping of str to TensorType
        Known types of its tensors.
    weights : mapping of str to Weight
        Its weights.
    task : {"regression", "classification"}, default=None
        Task of the model; by default a graph that has an output of labels (int64 or text) is a
        classifier, any other a regressor.
    link : {"identity", "log"}, default="identity"
        What the scores of a regressor are to be of its predictions.

    Returns
    -------
    model : onnx.ModelProto
        Graph with the same outputs.
    scores : Scores
        Scores and what follows them.

    Raises
    ------
    ConversionError
        If the graph has no floating-point output of shape (n, outputs).

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion import find_weights
    >>> from ortlearn.onnx_files.scores import attach_scores
    >>> from ortlearn.graphs import value_types
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (int64[N] label, float[N,2] p) <float[2,2] w = {1, 2, 3, 4}>
    ...     { z = MatMul (x, w) p = Softmax (z) label = ArgMax <axis = 1, keepdims = 0> (p) }''')
    >>> model, scores = attach_scores(model, value_types(model), find_weights(model))
    >>> scores.task, scores.score, scores.link, scores.n_outputs
    ('classification', 'z', 'softmax', 2)
    """
    end = GraphEnd(model, types)
    purpose = _purpose_of(end, link) if task is None else Purpose(task, link)
    scores = FINDERS[purpose.task](end, purpose, weights)
    return end.result(), scores


def _purpose_of(end: GraphEnd, link: str) -> Purpose:
    """Return what a graph is for, as its outputs tell."""
    floats, labels = split_outputs(end)
    if not labels:
        return Purpose("regression", link)
    columns = [end.width(name) or 0 for name in (*labels, *floats)]
    if len(columns) == 2 and columns[0] == columns[1] > 1:
        # A matrix of labels beside one of scores.
        return Purpose("multilabel", link, columns[0], raw_score(end, floats[0]) is not None)
    return Purpose("classification", link)
