"""Classifiers of one column of classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from onnx import NodeProto
from sklearn.ensemble import StackingClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

from ...exceptions import ConversionError
from ..preparation.kinds import ModelKind
from ..weights.weight_selection import Weight
from .base import Head, make_head
from .decisions import confidence_score, decision_score, single_score
from .graph_end import GraphEnd
from .labels import are_integers, class_table, write_best_class, write_by_threshold
from .links import RawScore, divided_by_sum, log_probabilities, raw_score
from .outputs import split_outputs
from .own_decisions import breaks_ties, own_decision
from .pair_votes import vote_score
from .votes import with_shared_votes

__all__ = ["classification_head"]

#: What may follow the last weight of decision scores.
COLUMNS_AND_SUMS = {
    *("Add", "Cast", "Concat", "Div", "Flatten", "Gather", "Identity", "Mul", "Neg", "Reshape", "Slice"),
    *("Squeeze", "Sub", "Unsqueeze"),
}


def classification_head(end: GraphEnd, kind: ModelKind, weights: Mapping[str, Weight]) -> Head:
    """Return the head of a classifier: raw scores, and sigmoid or softmax.

    Where probabilities are neither (forests, neighbours, votes, averages of members), their
    logarithms are the scores.
    """
    floats, labels = split_outputs(end)
    if len(floats) > 1 and labels:
        raise ConversionError(
            f"The classifier has several floating-point outputs, {floats}: give its probabilities as one "
            "output (skl2onnx: options={'zipmap': False})."
        )
    output = floats[0]
    label = labels[0] if labels else None
    raw, has_votes = vote_score(end, label, output), False
    if raw is None:
        shares = with_shared_votes(end, output)
        has_votes = shares != output
        if has_votes:  # they add up to one, as probabilities do
            kind = replace(kind, has_probabilities=True)
        raw = _scores(end, kind, shares, weights, bool(labels))
    if end.width(raw.name) is None and kind.classes is not None:
        raw = RawScore(end.as_matrix(raw.name, len(kind.classes)), raw.link)
    classes = kind.classes
    if classes is None and label is not None:
        classes = class_table(end, label)
        if classes is not None and len(classes) != max(end.width(raw.name) or 0, 2):
            classes = label = None  # numbers of classes, say: y tells which they are
    decision = own_decision(end, kind.core, output, raw, has_votes)
    if decision is None and kind.has_probabilities is False and raw.link == "softmax":
        decision = output  # votes, which the label follows, where the scores of their pairs are trained
    if label is not None and kind.classes is not None:
        label = _own_label(end, kind, label, output, raw, np.asarray(kind.classes), decision)
    return make_head(
        end,
        "classification",
        raw.name,
        raw.link,
        label=label,
        probabilities=output,
        classes=classes,
        decision=decision,
    )


def _scores(
    end: GraphEnd, kind: ModelKind, output: str, weights: Mapping[str, Weight], has_label: bool
) -> RawScore:
    if kind.has_probabilities is False:
        return decision_score(end, output)
    found = raw_score(end, output)
    if found is None and kind.has_probabilities is None:
        found = _after_weights(end, output, weights, has_label)
    if found is None:
        return log_probabilities(end, output)
    single = single_score(end, found.name) if found.link == "sigmoid" else None
    if single is not None or end.width(found.name) == 1:
        return RawScore(single or found.name, "sigmoid")
    if found.link == "sigmoid" and kind.classes is not None and len(kind.classes) == 2:
        whole = found.name if end.width(found.name) == 2 else end.as_matrix(found.name, 2)
        return RawScore(end.column(whole, 1), "sigmoid")
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
    """Tell whether an output depends on the inputs of the graph through one node only."""
    needed, inputs = {output}, {value.name for value in end.model.graph.input}
    for other in reversed(end.model.graph.node):
        if other.output[0] != node.output[0] and needed.intersection(other.output):
            needed.update(other.input)
    return not needed & inputs


def _own_label(
    end: GraphEnd,
    kind: ModelKind,
    label: str,
    output: str,
    raw: RawScore,
    classes: np.ndarray,
    decision: str | None,
) -> str | None:
    """Return the label, made what scikit-learn predicts; None where no graph can hold the classes."""
    if not are_integers(classes):
        return None
    if kind.threshold is not None and len(classes) == 2:
        of_probability = kind.threshold.of_probability and kind.has_probabilities
        score = _positive_score(end, output if of_probability else None, raw, kind.threshold.positive)
        write_by_threshold(end, label, score, kind.threshold, classes)
    elif decision and kind.has_probabilities and breaks_ties(kind.core):
        write_best_class(end, label, decision, classes)
    elif isinstance(kind.core, StackingClassifier) and end.width(decision or raw.name) in (1, len(classes)):
        # The last member predicts by its decisions: skl2onnx goes by probabilities, and by all of one column.
        write_best_class(end, label, decision or raw.name, classes)
    elif isinstance(kind.core, OneVsOneClassifier):
        write_best_class(end, label, output, classes)  # skl2onnx gives the number of the class
    elif isinstance(kind.core, OneVsRestClassifier) and not kind.has_probabilities:
        write_best_class(end, label, raw.name, classes)  # skl2onnx compares with 0.5
    elif raw.link == "sigmoid" and end.width(raw.name) not in (1, None):
        write_best_class(end, label, raw.name, classes)  # sigmoids of large scores are equal
    return label


def _positive_score(end: GraphEnd, probabilities: str | None, raw: RawScore, positive: int) -> str:
    if probabilities is not None:
        return end.column(probabilities, positive)
    if end.width(raw.name) == 1:
        return raw.name if positive == 1 else end.unary("Neg", raw.name)
    return end.minus(end.column(raw.name, positive), end.column(raw.name, 1 - positive))
