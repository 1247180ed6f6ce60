"""Find the trained tensor of an ONNX file: raw scores before sigmoid or softmax, or predictions."""

from collections.abc import Mapping, Sequence

from onnx import ModelProto

from ...graphs import TensorType
from ...models import Scores
from ...models.parameters import Parameter
from .links import raw_score
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
    if task == "regression" or (task is None and not labels):
        scores = regression_scores(view, link)
    elif all(len(view.sample_shape(name)) > 1 for name in floats):
        scores = position_classes(view, weights, label_shape)
    elif _are_labels(view, floats, labels, label_shape):
        scores = multilabel_scores(view)
    else:
        scores = classification_scores(view, weights)
    return view.result(), scores


def _are_labels(
    view: ScoreView, floats: Sequence[str], labels: Sequence[str], label_shape: LabelShape
) -> bool:
    """Return whether the columns of the scores are labels: those of another output, or of y."""
    if len(floats) > 1 or len(labels) > 1 or (view.width(floats[0]) or 0) < 2:
        return False
    if labels:
        return view.width(labels[0]) == view.width(floats[0])
    raw = raw_score(view, floats[0])
    is_softmax = raw is not None and raw.link == "softmax"
    return not is_softmax and (label_shape or ())[1:] == (view.width(floats[0]),)
