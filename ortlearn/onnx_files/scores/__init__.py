"""Find the trained tensor of an ONNX file: raw scores before sigmoid or softmax, or predictions."""

from collections.abc import Mapping

from onnx import ModelProto

from ...graphs import TensorType
from ...models import Scores
from ...models.parameters import Parameter
from .outputs import chosen_outputs, split_outputs
from .positions import LabelShape, position_classes
from .score_view import APPENDED, ScoreView
from .tasks import classification_scores, multilabel_scores, regression_scores

__all__ = ["APPENDED", "attach_scores"]


def attach_scores(
    model: ModelProto,
    types: Mapping[str, TensorType],
    weights: Mapping[str, Parameter],
    task: str | None = None,
    link: str = "identity",
    label_shape: LabelShape = None,
    output_name: str | None = None,
) -> tuple[ModelProto, Scores]:
    """Return a graph with the nodes that compute its scores, and the scores."""
    # By default, a graph with an output of labels (int64 or text) is a classifier, otherwise a regressor. The
    # link is that of a regressor. The shape of y determines the axis of classes.
    learned = [name for name, weight in weights.items() if weight.learned]
    view = ScoreView(model, types, chosen_outputs(model, output_name, learned) if output_name else ())
    floats, labels = split_outputs(view)
    columns = [view.width(name) or 0 for name in (*labels, *floats)]
    if task == "regression" or (task is None and not labels):
        scores = regression_scores(view, link)
    elif all(len(view.sample_shape(name)) > 1 for name in floats):
        scores = position_classes(view, weights, label_shape)
    elif len(columns) == 2 and columns[0] == columns[1] > 1:
        scores = multilabel_scores(view)  # matrices of labels and of scores
    else:
        scores = classification_scores(view, weights)
    return view.result(), scores
