"""Classifiers of one column of classes."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto

from ...models import Scores
from ...models.weight import Weight
from .decisions import confidence_score, decision_score, single_score
from .graph_end import GraphEnd
from .links import RawScore, divided_by_sum, log_probabilities, raw_score
from .outputs import Purpose, class_table, make_scores, split_outputs
from .several_outputs import probability_output
from .votes import vote_score, with_shared_votes

__all__ = ["classification_scores"]

#: What may follow the last weight of decision scores.
COLUMNS_AND_SUMS = {
    *("Add", "Cast", "Concat", "Div", "Flatten", "Gather", "Identity", "Mul", "Neg", "Reshape", "Slice"),
    *("Squeeze", "Sub", "Unsqueeze"),
}


def classification_scores(end: GraphEnd, purpose: Purpose, weights: Mapping[str, Weight]) -> Scores:
    """Return the raw scores of a classifier, and whether sigmoid or softmax follows.

    Where probabilities are neither (forests, neighbours, votes, averages of members), their
    logarithms are the scores.
    """
    floats, labels = split_outputs(end)
    label = labels[0] if labels else None
    classes = None if label is None else class_table(end, label)
    output = floats[0]
    if len(floats) > 1:
        output = probability_output(end, floats, None if classes is None else len(classes), weights)
    raw = vote_score(end, label, output)
    if raw is None:
        shares = with_shared_votes(end, output)
        # votes add up to one, as probabilities do
        raw = _scores(end, shares, weights, bool(labels), has_votes=shares != output)
    if classes is not None and len(classes) != max(end.width(raw.name) or 0, 2):
        classes = label = None  # numbers of classes, say: y tells which they are
    return make_scores(
        end, "classification", raw.name, raw.link, label=label, probabilities=output, classes=classes
    )


def _scores(
    end: GraphEnd, output: str, weights: Mapping[str, Weight], has_label: bool, has_votes: bool
) -> RawScore:
    found = raw_score(end, output)
    if found is None and not has_votes:
        found = _after_weights(end, output, weights, has_label)
    if found is None:
        return log_probabilities(end, output)
    single = single_score(end, found.name) if found.link == "sigmoid" else None
    if single is not None or end.width(found.name) == 1:
        return RawScore(single or found.name, "sigmoid")
    return found


def _after_weights(
    end: GraphEnd, output: str, weights: Mapping[str, Weight], has_label: bool
) -> RawScore | None:
    """Return what the last product or sum with a learned weight gives, in a graph of unknown origin.

    That is where a link function follows it and everything passes through it. Where only sums and
    choices of columns follow, the output is taken for scores. None for tables of values, averages of
    members and the like, which are taken for probabilities.
    """
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
    last = end.producer(output)
    if last is not None and last.op_type == "Div" and divided_by_sum(end, *last.input) is not None:
        after -= {"Abs", "Equal", "ReduceSum", "Where"}
    if after - COLUMNS_AND_SUMS:
        return None
    raw = decision_score(end, output)
    return raw if has_label or end.width(raw.name) == 1 else RawScore(raw.name, "softmax")


def _is_bottleneck(end: GraphEnd, node: NodeProto, output: str) -> bool:
    """Return whether an output depends on the inputs of the graph through one node only."""
    needed, inputs = {output}, {value.name for value in end.model.graph.input}
    for other in reversed(end.model.graph.node):
        if other.output[0] != node.output[0] and needed.intersection(other.output):
            needed.update(other.input)
    return not needed & inputs
