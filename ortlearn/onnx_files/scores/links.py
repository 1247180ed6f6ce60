"""Find the raw scores from which probabilities are computed."""

from typing import NamedTuple

from ...graphs.nodes import attribute
from ...models.scores import LOWEST
from .graph_end import GraphEnd


class RawScore(NamedTuple):
    """Scores of shape (n, k), and the function of probabilities, ``"sigmoid"`` or ``"softmax"``."""

    name: str
    link: str


REST = (("Sub", 1, "p"), ("Add", 1, ("Neg", "p")))  # 1 - p
_SUMS = tuple(("Add", 1, ("Exp", minus_z)) for minus_z in (("Neg", "z"), ("Mul", "z", -1), "u"))
#: Sigmoids of z or -u; the last one is that of the modified Huber loss in scikit-learn.
SIGMOIDS = (
    ("Sigmoid", "z"),
    *(("Div", 1, total) for total in _SUMS),
    *(("Reciprocal", total) for total in _SUMS),
    ("Div", ("Add", ("Clip", "z"), 1), 2),
)
SOFTMAXES = (("Softmax|LogSoftmax", "z"), ("Exp", ("Sub", "z", ("ReduceLogSumExp", "z"))))
EXPONENTIALS = (("Exp", ("Sub", "z", ("ReduceMax", "z"))), ("Exp", "z"))  # divided by their sum
GUARDS = ("Reshape", "Add", "Max", "Where")  # operators on a divisor against division by zero


def raw_score(end: GraphEnd, name: str) -> RawScore | None:
    """Return the scores of a matrix of probabilities, None if it is neither a sigmoid nor a softmax."""
    score = _sigmoid_score(end, name)
    if score is not None:
        return RawScore(score, "sigmoid")
    found, top = end.match_any(name, SOFTMAXES), divided_by_sum(end, name)
    if top is not None:
        found = end.match_any(top, EXPONENTIALS)
    if found is not None:
        return RawScore(found["z"], "softmax")
    return _score_of_columns(end, name) if top is None else raw_score(end, top)


def _sigmoid_score(end: GraphEnd, name: str) -> str | None:
    found = end.match_any(name, SIGMOIDS)
    if found is None or "z" in found:
        return None if found is None else found["z"]
    return end.append("Neg", found["u"])


def _score_of_columns(end: GraphEnd, name: str) -> RawScore | None:
    """Return the scores of concatenated columns: 1 - p and p, or sigmoids; None for others."""
    columns = end.parts_of(name)
    if columns is None:
        return None
    rest = end.match_any(columns[0], REST) if len(columns) == 2 else None
    if rest is not None and rest["p"] == columns[1]:
        columns = columns[1:]
    scores = [score for score in (_logit(end, column) for column in columns) if score is not None]
    return RawScore(end.concat(scores), "sigmoid") if len(scores) == len(columns) else None


def log_probabilities(end: GraphEnd, name: str) -> RawScore:
    """Append ``log(max(p, LOWEST))``, whose softmax is p."""
    return RawScore(end.append("Log", end.append("Max", name, end.scalar(LOWEST, name))), "softmax")


def _logit(end: GraphEnd, name: str) -> str | None:
    """Return the score, of shape (n, 1), whose sigmoid is a column of probabilities, None without one."""
    source = end.column_of(name)
    if source is not None:
        return column_logit(end, *source)
    rest = end.match(name, REST[0])
    if rest is not None:
        other = _logit(end, rest["p"])
        return None if other is None else end.append("Neg", other)
    score = _sigmoid_score(end, name)
    return score if score is None or end.width(score) == 1 else end.as_column(score)


def column_logit(end: GraphEnd, matrix: str, index: int) -> str | None:
    """Return the score, of shape (n, 1), of a column of a matrix of probabilities, None without one."""
    columns = end.parts_of(matrix)
    if columns is not None and index < len(columns):
        return _logit(end, columns[index])
    raw = raw_score(end, matrix)
    if raw is None:
        return None
    if raw.link == "sigmoid" and end.width(raw.name) == 1:  # of the second of two classes
        return raw.name if index == 1 else end.append("Neg", raw.name)
    if raw.link == "sigmoid":
        return end.column(raw.name, index)
    if end.width(raw.name) == 2:
        return end.append("Sub", end.column(raw.name, index), end.column(raw.name, 1 - index))
    return None


def divided_by_sum(end: GraphEnd, name: str) -> str | None:
    """Return the tensor that is divided by its sum over columns, None without one."""
    quotient = end.match(name, ("Div", "top", "bottom"))
    total = end.producer(quotient["bottom"], passing=GUARDS) if quotient else None
    if quotient is None or total is None or total.op_type != "ReduceSum":
        return None
    axes = attribute(total, "axes") if len(total.input) < 2 else end.constant(total.input[1])
    if axes is None or list(axes) not in ([1], [-1]):
        return None
    top, terms = quotient["top"], end.origin(total.input[0], ("Abs",))
    guarded = end.match(top, ("Add", "p", "guard")) or {}
    return terms if terms in (top, *guarded.values()) else None
