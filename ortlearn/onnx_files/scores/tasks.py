"""Find or append the scores of regressors, classifiers and multilabel classifiers."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from ...exceptions import ConversionError
from ...models import Positions, Scores
from ...models.parameters import Parameter
from .decisions import confidence_score, decision_score, single_score, vote_score, with_shared_votes
from .links import RawScore, column_logit, divided_by_sum, log_probabilities, raw_score
from .outputs import class_table, probability_output, split_outputs
from .score_view import ScoreView

#: Operators that may follow the last weight of a decision function.
COLUMNS_AND_SUMS = {
    *("Add", "Cast", "Concat", "Div", "Flatten", "Gather", "Identity", "Mul", "Neg", "Reshape", "Slice"),
    *("Squeeze", "Sub", "Unsqueeze"),
}


def _scores(view: ScoreView, task: str, score: str, link: str, **outputs: Any) -> Scores:
    """Return the scores of a model, of shape (n, k) with a known k."""
    width = view.width(score)
    if width is None:
        raise ConversionError(
            f"Tensor {score!r} has the shape {view.op.shape(score)}: training requires (n, k), k known. "
            "Export the model with fixed sizes."
        )
    return view.scores(task, score, width, link, **outputs)


def regression_scores(view: ScoreView, link: str) -> Scores:
    """Return the scores of a regressor; with a log link, the input of the last Exp, appended if missing."""
    # Outputs of more than two dimensions are flattened to columns.
    score = output = split_outputs(view)[0][0]
    sizes = view.sample_shape(output)
    if link == "log":
        power = view.producer(output, passing=("Identity", "Reshape") if len(sizes) < 2 else ())
        if power is not None and power.op_type == "Exp":
            score = power.input[0]
        else:
            score = view.replace_output(output, columns=sizes)
            view.op.node("Identity", view.op.Exp(score), outputs=[output])
    if len(sizes) > 1:
        positions = Positions(sizes, per_position=False)
        count, score = positions.count, view.append("Reshape", score, [0, -1], columns=(positions.count,))
        return view.scores("regression", score, count or 0, link, prediction=output, positions=positions)
    score = view.origin(score)
    score = view.as_column(score) if len(view.op.shape(score) or ()) == 1 else score
    return _scores(view, "regression", score, link, prediction=output if link == "log" else None)


def multilabel_scores(view: ScoreView) -> Scores:
    """Return the scores of a multilabel classifier, the logits of its probabilities."""
    (output, *_), labels = split_outputs(view)
    n_labels, raw = view.width(output) or 0, raw_score(view, output)
    if raw is None:
        scores = decision_score(view, output).name
    elif raw.link == "sigmoid" and view.width(raw.name) == n_labels:
        scores = raw.name
    else:
        columns = [column_logit(view, output, index) for index in range(n_labels)]
        known = [column for column in columns if column is not None]
        if len(known) < n_labels:  # log-odds
            rest = view.append("Sub", view.scalar(1.0, output), output, like=output)
            logarithms = [log_probabilities(view, name).name for name in (output, rest)]
            known = [view.append("Sub", *logarithms)]
        scores = view.concat(known)
    label = labels[0] if labels else view.op.unique("label")
    if not labels or any(node.op_type == "Binarizer" for node in view.nodes_before(label)):
        # skl2onnx compares scores, not probabilities, with 0.5; onnxruntime has no Binarizer in float64.
        if labels:
            view.replace_output(label, TensorProto.INT64, view.width(scores))
        above = view.op.Greater(scores, view.scalar(0.0, scores))
        view.op.node("Cast", above, outputs=[label], to=TensorProto.INT64)
    probabilities = None if raw is None else output
    outputs = {"label": label, "probabilities": probabilities, "groups": (1,) * n_labels}
    return _scores(view, "multilabel", scores, "sigmoid", classes=np.arange(n_labels), **outputs)


def classification_scores(view: ScoreView, weights: Mapping[str, Parameter]) -> Scores:
    """Return the raw scores of a classifier; log-probabilities of forests, neighbours and votes."""
    floats, labels = split_outputs(view)
    label = labels[0] if labels else None
    classes = None if label is None else class_table(view, label)
    output = probability_output(view, floats, None if classes is None else len(classes), weights)
    output = _as_matrix(view, output)
    raw = vote_score(view, label, output) or _class_scores(view, output, weights, bool(labels))
    if _is_flat(view, raw.name):
        raw = raw._replace(name=view.as_column(raw.name))
    output = view.as_column(output) if _is_flat(view, output) else output
    if classes is not None and len(classes) != max(view.width(raw.name) or 0, 2):
        classes = label = None  # labels are indices, for example: y determines the classes
    elif classes is None and label is not None and _is_argmax(view, label, (output, raw.name)):
        label = None
    shares = raw.name if raw.decides and label is not None else output
    outputs = {"label": label, "probabilities": shares, "classes": classes}
    return _scores(view, "classification", raw.name, raw.link, **outputs)


def _is_flat(view: ScoreView, name: str) -> bool:
    return len(view.op.shape(name) or ()) == 1


def _as_matrix(view: ScoreView, output: str) -> str:
    """Return the matrix with a flat output as column of the second class, or the output itself."""
    if not _is_flat(view, output):
        return output
    inner = view.origin(output, ("Flatten", "Reshape", "Squeeze"))
    matrix, index = view.column_of(inner) or (inner, 0)
    return matrix if (view.width(matrix), index) in ((1, 0), (2, 1)) else output


def _is_argmax(view: ScoreView, label: str, scores: Collection[str]) -> bool:
    """Return whether labels are the column index of the largest score."""
    node = view.producer(label, "ArgMax", passing=("Cast", "Flatten", "Identity", "Reshape", "Squeeze"))
    return node is not None and view.origin(node.input[0]) in {view.origin(name) for name in scores}


def _class_scores(view: ScoreView, output: str, weights: Mapping[str, Parameter], label: bool) -> RawScore:
    shares = with_shared_votes(view, output)
    found = raw_score(view, shares)
    if found is None and shares == output:  # votes sum to one, as probabilities
        found = _after_weights(view, output, weights, label)
    if found is None:
        return log_probabilities(view, shares)
    single = single_score(view, found.name) if found.link == "sigmoid" else None
    if single is not None or view.width(found.name) == 1:
        return found._replace(name=single or found.name, link="sigmoid")
    return found


def _after_weights(
    view: ScoreView, output: str, weights: Mapping[str, Parameter], has_label: bool
) -> RawScore | None:
    """Return the scores after the last learned weight of a graph, None if the output is probabilities."""
    # These are the output if only sums and column selections follow the last product or sum with a learned
    # weight. After a sigmoid or softmax, other operators compute other probabilities.
    confidences = confidence_score(view, output)
    if confidences is not None:
        return confidences
    learned = {name for name, weight in weights.items() if weight.learned}
    after: set[str] = set()
    for node in view.nodes_before(output):
        if learned.intersection(node.input):
            if node.op_type == "Gather" or _mixes_probabilities(view, node):
                return None
            break
        after.add(node.op_type)
    if divided_by_sum(view, output) is not None:
        after -= {"Abs", "Equal", "ReduceSum", "Where"}
    if after - COLUMNS_AND_SUMS:
        return None
    raw = decision_score(view, output)
    return raw if has_label or view.width(raw.name) == 1 else raw._replace(link="softmax")


def _mixes_probabilities(view: ScoreView, node: NodeProto) -> bool:
    """Return whether a product is that of probabilities and a matrix whose rows are probabilities."""
    table = view.constant(node.input[1]) if node.op_type == "MatMul" else None
    if table is None or table.ndim != 2 or table.shape[1] < 2 or raw_score(view, node.input[0]) is None:
        return False
    return bool((table >= 0).all() and np.allclose(table.sum(axis=1), 1, atol=1e-5))
