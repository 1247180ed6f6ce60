"""Decision scores of classifiers without probabilities."""

from __future__ import annotations

from onnx import NodeProto

from .graph_end import GraphEnd
from .links import RawScore, divided_by_sum

__all__ = ["confidence_score", "decision_score", "single_score"]


def decision_score(end: GraphEnd, name: str) -> RawScore:
    """Return the scores to train of an output with decision scores, of one column for two classes.

    One-against-one votes have no gradient: the sum of the pairwise scores of each class, which breaks their
    ties, is trained in their place (``_ovr_decision_function`` of scikit-learn). Other scores are of each
    class against the rest.
    """
    shape = end.op.shape(name)
    if shape is not None and len(shape) == 1:
        return RawScore(end.as_matrix(name, 1), "sigmoid")
    node = end.producer(name)
    if node is not None:
        for pattern in (_confidences, _without_norm, _one_column, _joined):
            found = pattern(end, node)
            if found is not None:
                return found
    return RawScore(end.origin(name), "sigmoid")


def confidence_score(end: GraphEnd, name: str) -> RawScore | None:
    """Return the sums of pairwise scores that votes are refined with, None where there are no votes."""
    node = end.producer(name)
    return None if node is None else _confidences(end, node)


def single_score(end: GraphEnd, name: str) -> str | None:
    """Return z where a matrix has the columns -z and z, None for any other."""
    node = end.producer(name)
    found = None if node is None else _one_column(end, node)
    return None if found is None else found.name


def _confidences(end: GraphEnd, node: NodeProto) -> RawScore | None:
    """votes + s / (3 (|s| + 1)): s."""
    if node.op_type != "Add":
        return None
    for name in node.input:
        quotient = end.producer(name)
        if quotient is None or quotient.op_type != "Div":
            continue
        score = end.origin(quotient.input[0])
        if any(
            n.op_type == "Abs" and end.origin(n.input[0]) == score for n in _factors(end, quotient.input[1])
        ):
            single = single_score(end, score)
            return RawScore(score, "softmax") if single is None else RawScore(single, "sigmoid")
    return None


def _factors(end: GraphEnd, name: str):
    """Yield the nodes that a scaled and shifted tensor comes from."""
    node = end.producer(name)
    while node is not None:
        yield node
        inputs = [i for i in node.input if end.constant(i) is None]
        if node.op_type not in ("Mul", "Add") or len(inputs) != 1:
            return
        node = end.producer(inputs[0])


def _without_norm(end: GraphEnd, node: NodeProto) -> RawScore | None:
    """Scores divided by their sum, which one-against-rest does whatever they are."""
    if node.op_type in ("Normalizer", "LpNormalization"):
        return decision_score(end, node.input[0])
    terms = divided_by_sum(end, *node.input) if node.op_type == "Div" else None
    return None if terms is None else decision_score(end, terms)


def _one_column(end: GraphEnd, node: NodeProto) -> RawScore | None:
    """The second of two columns -z and z (or 1 - z and z), or both: z."""
    source = end.column_of(node)
    columns = end.parts_of(node.output[0] if source is None else source[0])
    if columns is None or len(columns) != 2 or (source is not None and source[1] != 1):
        return None
    first = end.producer(columns[0])
    if (
        first is None
        or end.origin(columns[1]) not in end.inputs(first)
        or first.op_type not in ("Neg", "Mul", "Sub")
    ):
        return None
    inner = end.producer(columns[1])
    found = None if inner is None else _one_column(end, inner)
    return RawScore(columns[1], "sigmoid") if found is None else found


def _joined(end: GraphEnd, node: NodeProto) -> RawScore | None:
    """Columns of several members side by side."""
    columns = end.parts_of(node.output[0])
    if columns is None:
        return None
    scores = [decision_score(end, column).name for column in columns]
    return RawScore(end.concat(scores), "sigmoid")
