"""Find or append the scores of regressors, classifiers and multilabel classifiers."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from ...exceptions import ConversionError
from ...graphs.nodes import needed_nodes
from ...models import Positions, Scores
from ...models.weight import Weight
from .decisions import confidence_score, decision_score, single_score, vote_score, with_shared_votes
from .graph_end import GraphEnd
from .links import RawScore, column_logit, divided_by_sum, log_probabilities, raw_score
from .outputs import class_table, probability_output, split_outputs

#: Operators that may follow the last weight of a decision function.
COLUMNS_AND_SUMS = {
    *("Add", "Cast", "Concat", "Div", "Flatten", "Gather", "Identity", "Mul", "Neg", "Reshape", "Slice"),
    *("Squeeze", "Sub", "Unsqueeze"),
}


def _scores(end: GraphEnd, task: str, score: str, link: str, **outputs: Any) -> Scores:
    """Return the scores of a model, of shape (n, k) with a known k."""
    width = end.width(score)
    if width is None:
        raise ConversionError(
            f"Tensor {score!r} has the shape {end.op.shape(score)}: training requires (n, k) with a known k. "
            "Export the model with fixed sizes."
        )
    return end.scores(task, score, width, link, **outputs)


def regression_scores(end: GraphEnd, link: str) -> Scores:
    """Return the scores of a regressor; with a log link, the input of the last Exp, appended if missing."""
    # Outputs of more than two dimensions are flattened to columns.
    score = output = split_outputs(end)[0][0]
    sizes = end.sample_shape(output)
    if link == "log":
        power = end.producer(output, passing=("Identity", "Reshape") if len(sizes) < 2 else ())
        if power is not None and power.op_type == "Exp":
            score = power.input[0]
        else:
            score = end.replace_output(output, columns=sizes)
            end.op.node("Identity", end.op.Exp(score), outputs=[output])
    if len(sizes) > 1:
        positions = Positions(sizes, apart=False)
        count, score = positions.count, end.append("Reshape", score, [0, -1], columns=(positions.count,))
        return end.scores("regression", score, count or 0, link, prediction=output, positions=positions)
    score = end.origin(score)
    score = end.as_column(score) if len(end.op.shape(score) or ()) == 1 else score
    return _scores(end, "regression", score, link, prediction=output if link == "log" else None)


def multilabel_scores(end: GraphEnd) -> Scores:
    """Return the scores of a multilabel classifier, the logits of its probabilities."""
    (output, *_), (label, *_) = split_outputs(end)
    n_labels, raw = end.width(output) or 0, raw_score(end, output)
    if raw is None:
        scores = decision_score(end, output).name
    elif raw.link == "sigmoid" and end.width(raw.name) == n_labels:
        scores = raw.name
    else:
        columns = [column_logit(end, output, index) for index in range(n_labels)]
        known = [column for column in columns if column is not None]
        if len(known) < n_labels:  # log-odds
            rest = end.append("Sub", end.scalar(1.0, output), output, like=output)
            logarithms = [log_probabilities(end, name).name for name in (output, rest)]
            known = [end.append("Sub", *logarithms)]
        scores = end.concat(known)
    if any(node.op_type == "Binarizer" for node in end.nodes_before(label)):
        # skl2onnx compares scores, not probabilities, with 0.5; onnxruntime has no Binarizer in float64.
        end.replace_output(label, TensorProto.INT64, end.width(scores))
        above = end.op.Greater(scores, end.scalar(0.0, scores))
        end.op.node("Cast", above, outputs=[label], to=TensorProto.INT64)
    probabilities = None if raw is None else output
    outputs = {"label": label, "probabilities": probabilities, "groups": (1,) * n_labels}
    return _scores(end, "multilabel", scores, "sigmoid", classes=np.arange(n_labels), **outputs)


def classification_scores(end: GraphEnd, weights: Mapping[str, Weight]) -> Scores:
    """Return the raw scores of a classifier; log-probabilities of forests, neighbours and votes."""
    floats, labels = split_outputs(end)
    label = labels[0] if labels else None
    classes = None if label is None else class_table(end, label)
    output = probability_output(end, floats, None if classes is None else len(classes), weights)
    output = _as_matrix(end, output)
    raw = vote_score(end, label, output) or _class_scores(end, output, weights, bool(labels))
    if _is_flat(end, raw.name):
        raw = RawScore(end.as_column(raw.name), raw.link)
    output = end.as_column(output) if _is_flat(end, output) else output
    if classes is not None and len(classes) != max(end.width(raw.name) or 0, 2):
        classes = label = None  # labels are indices, for example: y determines the classes
    elif classes is None and label is not None and _is_argmax(end, label, (output, raw.name)):
        label = None
    outputs = {"label": label, "probabilities": output, "classes": classes}
    return _scores(end, "classification", raw.name, raw.link, **outputs)


def _is_flat(end: GraphEnd, name: str) -> bool:
    return len(end.op.shape(name) or ()) == 1


def _as_matrix(end: GraphEnd, output: str) -> str:
    """Return the matrix with a flat output as column of the second class, or the output itself."""
    if not _is_flat(end, output):
        return output
    inner = end.origin(output, ("Flatten", "Reshape", "Squeeze"))
    matrix, index = end.column_of(inner) or (inner, 0)
    return matrix if (end.width(matrix), index) in ((1, 0), (2, 1)) else output


def _is_argmax(end: GraphEnd, label: str, scores: Collection[str]) -> bool:
    """Return whether labels are the column index of the largest score."""
    node = end.producer(label, "ArgMax", passing=("Cast", "Flatten", "Identity", "Reshape", "Squeeze"))
    return node is not None and end.origin(node.input[0]) in {end.origin(name) for name in scores}


def _class_scores(end: GraphEnd, output: str, weights: Mapping[str, Weight], has_label: bool) -> RawScore:
    shares = with_shared_votes(end, output)
    found = raw_score(end, shares)
    if found is None and shares == output:  # votes sum to one, as probabilities
        found = _after_weights(end, output, weights, has_label)
    if found is None:
        return log_probabilities(end, shares)
    single = single_score(end, found.name) if found.link == "sigmoid" else None
    if single is not None or end.width(found.name) == 1:
        return RawScore(single or found.name, "sigmoid")
    return found


def _after_weights(
    end: GraphEnd, output: str, weights: Mapping[str, Weight], has_label: bool
) -> RawScore | None:
    """Return the scores after the last learned weight of a graph, None if the output is probabilities."""
    # These are the last product or sum with a learned weight if a sigmoid or softmax follows and all paths
    # contain it, and the output if only sums and column selections follow.
    confidences = confidence_score(end, output)
    if confidences is not None:
        return confidences
    learned = {name for name, weight in weights.items() if weight.learned}
    after: set[str] = set()
    for node in end.nodes_before(output):
        if learned.intersection(node.input):
            if node.op_type == "Gather":
                return None
            if after & {"Softmax", "LogSoftmax", "Sigmoid"}:
                link = "sigmoid" if "Sigmoid" in after else "softmax"
                return RawScore(node.output[0], link) if _is_bottleneck(end, node, output) else None
            break
        after.add(node.op_type)
    if divided_by_sum(end, output) is not None:
        after -= {"Abs", "Equal", "ReduceSum", "Where"}
    if after - COLUMNS_AND_SUMS:
        return None
    raw = decision_score(end, output)
    return raw if has_label or end.width(raw.name) == 1 else RawScore(raw.name, "softmax")


def _is_bottleneck(end: GraphEnd, node: NodeProto, output: str) -> bool:
    """Return whether an output depends on the inputs of the graph through one node only."""
    others = [other for other in end.nodes if other.output[0] != node.output[0]]
    read = {output}.union(*(other.input for other in needed_nodes(others, [output])))
    return read.isdisjoint(value.name for value in end.graph.input)
