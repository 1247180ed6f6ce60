"""From probabilities back to the raw scores that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import NodeProto

from ...models.scores import LOWEST
from .graph_end import GraphEnd

__all__ = [
    "RawScore",
    "column_logit",
    "divided_by_sum",
    "log_probabilities",
    "logit",
    "raw_score",
]


@dataclass(frozen=True)
class RawScore:
    """Scores and what turns them into probabilities.

    Attributes
    ----------
    name : str
        Tensor of shape (n, k).
    link : {"sigmoid", "softmax"}
        Sigmoid of each score, or softmax of all.
    """

    name: str
    link: str


def raw_score(end: GraphEnd, name: str) -> RawScore | None:
    """Return the scores whose sigmoid or softmax a matrix of probabilities is, None where it is neither.

    Columns of scores that are apart are joined at the end of the graph.
    """
    node = end.producer(name)
    function = None if node is None else LINKS.get(node.op_type)
    return None if node is None or function is None else function(end, node)


def log_probabilities(end: GraphEnd, name: str) -> RawScore:
    """Append ``log(max(p, LOWEST))``, whose softmax is p (divided by its sum)."""
    return RawScore(end.unary("Log", end.floor(name, LOWEST)), "softmax")


def logit(end: GraphEnd, name: str, exact: bool = False) -> str | None:
    """Return the score whose sigmoid a column of probabilities, of shape (n, 1), is.

    Where the graph has no such score, ``log(max(p, LOWEST)) - log(max(1 - p, LOWEST))`` is appended, or None
    returned if it is to be exact.
    """
    found = _exact_logit(end, name)
    if found is not None or exact:
        return found
    rest = end.minus(end.scalar(1.0, name), name)
    end.copy_type(rest, name)
    return end.minus(log_probabilities(end, name).name, log_probabilities(end, rest).name)


def _exact_logit(end: GraphEnd, name: str) -> str | None:
    node = end.producer(name)
    if node is None:
        return None
    source = end.column_of(node)
    if source is not None:
        return column_logit(end, *source)
    if node.op_type == "Sub" and _is_constant(end, node.input[0], 1.0):
        other = _exact_logit(end, node.input[1])
        return None if other is None else end.unary("Neg", other)
    function = SIGMOIDS.get(node.op_type)
    score = None if function is None else function(end, node)
    return score if score is None or end.width(score) == 1 else end.as_matrix(score, 1)


def column_logit(end: GraphEnd, matrix: str, index: int) -> str | None:
    """Return the score, of shape (n, 1), whose sigmoid a column of a matrix of probabilities is.

    None where the graph has no such score.
    """
    columns = end.parts_of(matrix)
    if columns is not None and index < len(columns):
        return _exact_logit(end, columns[index])
    raw = raw_score(end, matrix)
    if raw is None:
        return None
    if raw.link == "sigmoid":
        return _column_or_all(end, raw.name, index)
    if end.width(raw.name) == 2:
        return end.minus(end.column(raw.name, index), end.column(raw.name, 1 - index))
    return None


def _column_or_all(end: GraphEnd, score: str, index: int) -> str:
    # One score for two classes is that of the second.
    if end.width(score) == 1:
        return score if index == 1 else end.unary("Neg", score)
    return end.column(score, index)


def _is_constant(end: GraphEnd, name: str, value: float) -> bool:
    array = end.constant(name)
    return (
        array is not None and array.dtype.kind == "f" and array.size == 1 and float(array.ravel()[0]) == value
    )


# -- sigmoids, of a column or of each column -----------------------------------------------------------


def _sigmoid(end: GraphEnd, node: NodeProto) -> str:
    return end.origin(node.input[0])


def _inverse_of_one_plus(end: GraphEnd, node: NodeProto) -> str | None:
    """1 / (1 + exp(-z)), z: written as a quotient or as a reciprocal."""
    if node.op_type == "Div" and not _is_constant(end, node.input[0], 1.0):
        return None
    total = end.producer(node.input[-1])
    if total is None or total.op_type != "Add":
        return None
    for one, other in (total.input, reversed(total.input)):
        power = end.producer(other)
        if _is_constant(end, one, 1.0) and power is not None and power.op_type == "Exp":
            return end.opposite(power.input[0])
    return None


def _clipped(end: GraphEnd, node: NodeProto) -> str | None:
    """(clip(z, -1, 1) + 1) / 2, which scikit-learn takes for the modified Huber loss: z."""
    if node.op_type == "Div" and not _is_constant(end, node.input[1], 2.0):
        return None
    total = end.producer(node.input[0])
    if total is None or total.op_type != "Add" or not _is_constant(end, total.input[1], 1.0):
        return None
    clip = end.producer(total.input[0])
    return end.origin(clip.input[0]) if clip is not None and clip.op_type == "Clip" else None


SIGMOIDS: dict[str, Callable[[GraphEnd, NodeProto], str | None]] = {
    "Sigmoid": _sigmoid,
    "Reciprocal": _inverse_of_one_plus,
    "Div": lambda end, node: _inverse_of_one_plus(end, node) or _clipped(end, node),
}


def _of_each(end: GraphEnd, node: NodeProto) -> RawScore | None:
    score = SIGMOIDS[node.op_type](end, node)
    return None if score is None else RawScore(score, "sigmoid")


# -- whole matrices ------------------------------------------------------------------------------------


def _softmax(end: GraphEnd, node: NodeProto) -> RawScore:
    return RawScore(end.origin(node.input[0]), "softmax")


def _exponential(end: GraphEnd, node: NodeProto) -> RawScore | None:
    """exp(z - log sum exp(z)): softmax."""
    inner = end.producer(node.input[0])
    if inner is None or inner.op_type != "Sub":
        return None
    scores = end.origin(inner.input[0])
    reduce = end.producer(end.before(inner.input[1], ("Reshape", "Unsqueeze")))
    if reduce is None or reduce.op_type != "ReduceLogSumExp" or end.origin(reduce.input[0]) != scores:
        return None
    return RawScore(scores, "softmax")


def _quotient(end: GraphEnd, node: NodeProto) -> RawScore | None:
    """p / sum(p): softmax where p are exponentials, otherwise what p is."""
    found = _of_each(end, node)
    if found is not None:
        return found
    top = divided_by_sum(end, node.input[0], node.input[1])
    if top is None:
        return None
    power = end.producer(top)
    if power is not None and power.op_type == "Exp":
        inner = end.producer(power.input[0])
        shifted = inner is not None and inner.op_type == "Sub" and _is_maximum(end, inner)
        return RawScore(end.origin(inner.input[0] if shifted and inner else power.input[0]), "softmax")
    return raw_score(end, top)


def _normalized(end: GraphEnd, node: NodeProto) -> RawScore | None:
    """Positive values divided by their sum."""
    return raw_score(end, node.input[0])


def _is_maximum(end: GraphEnd, node: NodeProto) -> bool:
    scores, largest = end.inputs(node)
    reduce = end.producer(largest)
    return reduce is not None and reduce.op_type == "ReduceMax" and end.origin(reduce.input[0]) == scores


def divided_by_sum(end: GraphEnd, top: str, bottom: str) -> str | None:
    """Return what is divided by its sum over columns, guarded against a sum of zero or not."""
    # A reshape to (n, 1); what is added, or chosen, where the sum is zero.
    total = end.producer(end.before(bottom, ("Reshape", "Add", "Max", "Where")))
    if total is None or total.op_type != "ReduceSum" or end.axes(total) not in ([1], [-1]):
        return None
    terms = end.before(total.input[0], ("Abs",))
    guarded = end.producer(top)
    is_guarded = guarded is not None and guarded.op_type == "Add" and terms in end.inputs(guarded)
    return terms if end.origin(top) == terms or is_guarded else None


def _side_by_side(end: GraphEnd, node: NodeProto) -> RawScore | None:
    """Two columns 1 - p and p, or one sigmoid per column."""
    columns = end.parts_of(node.output[0])
    if columns is None:
        return None
    if len(columns) == 2 and _is_rest(end, *columns):
        score = logit(end, columns[1], exact=True)
        return None if score is None else RawScore(score, "sigmoid")
    scores = [logit(end, column, exact=True) for column in columns]
    if None in scores:
        return None
    return RawScore(end.concat([score for score in scores if score is not None]), "sigmoid")


def _is_rest(end: GraphEnd, first: str, second: str) -> bool:
    """Return whether a column is one minus another."""
    node = end.producer(first)
    if node is None:
        return False
    if node.op_type == "Sub":
        return _is_constant(end, node.input[0], 1.0) and end.origin(node.input[1]) == end.origin(second)
    if node.op_type == "Add":  # 1 + (-p), in either order
        for one, minus in (node.input, reversed(node.input)):
            negated = end.producer(minus)
            if _is_constant(end, one, 1.0) and negated is not None and negated.op_type == "Neg":
                return end.origin(negated.input[0]) == end.origin(second)
    return False


LINKS: dict[str, Callable[[GraphEnd, NodeProto], RawScore | None]] = {
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Sigmoid": _of_each,
    "Reciprocal": _of_each,
    "Exp": _exponential,
    "Div": _quotient,
    "Normalizer": _normalized,
    "LpNormalization": _normalized,
    "Concat": _side_by_side,
}
