"""Find the raw scores from which probabilities are computed."""

from typing import NamedTuple

from ...graphs.nodes import attribute
from ...models.scores import LOWEST
from .score_view import ScoreView


class RawScore(NamedTuple):
    """Scores of shape (n, k), and the function of probabilities, ``"sigmoid"`` or ``"softmax"``."""

    name: str
    link: str
    decides: bool = False  # whether the output has the scores of a decision function, not probabilities


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


def raw_score(view: ScoreView, name: str) -> RawScore | None:
    """Return the scores of a matrix of probabilities, None if it is neither a sigmoid nor a softmax."""
    score = _sigmoid_score(view, name)
    if score is not None:
        return RawScore(score, "sigmoid")
    found, top = view.match_any(name, SOFTMAXES), divided_by_sum(view, name)
    if top is not None:
        found = view.match_any(top, EXPONENTIALS)
    if found is not None:
        return RawScore(found["z"], "softmax")
    return _score_of_columns(view, name) if top is None else raw_score(view, top)


def _sigmoid_score(view: ScoreView, name: str) -> str | None:
    found = view.match_any(name, SIGMOIDS)
    if found is None or "z" in found:
        return None if found is None else found["z"]
    return view.append("Neg", found["u"])


def _score_of_columns(view: ScoreView, name: str) -> RawScore | None:
    """Return the scores of concatenated columns: 1 - p and p, or sigmoids; None for others."""
    columns = view.columns_of(name)
    if columns is None:
        return None
    rest = view.match_any(columns[0], REST) if len(columns) == 2 else None
    if rest is not None and rest["p"] == columns[1]:
        columns = columns[1:]
    scores = [score for score in (_logit(view, column) for column in columns) if score is not None]
    return RawScore(view.concat(scores), "sigmoid") if len(scores) == len(columns) else None


def log_probabilities(view: ScoreView, name: str) -> RawScore:
    """Append ``log(max(p, LOWEST))``, whose softmax is p."""
    return RawScore(view.append("Log", view.append("Max", name, view.scalar(LOWEST, name))), "softmax")


def _logit(view: ScoreView, name: str) -> str | None:
    """Return the score, of shape (n, 1), whose sigmoid is a column of probabilities, None without one."""
    source = view.column_of(name)
    if source is not None:
        return column_logit(view, *source)
    rest = view.match(name, REST[0])
    if rest is not None:
        other = _logit(view, rest["p"])
        return None if other is None else view.append("Neg", other)
    score = _sigmoid_score(view, name)
    return score if score is None or view.width(score) == 1 else view.as_column(score)


def column_logit(view: ScoreView, matrix: str, index: int) -> str | None:
    """Return the score, of shape (n, 1), of a column of a matrix of probabilities, None without one."""
    columns = view.columns_of(matrix)
    if columns is not None and index < len(columns):
        return _logit(view, columns[index])
    raw = raw_score(view, matrix)
    if raw is None:
        return None
    if raw.link == "sigmoid" and view.width(raw.name) == 1:  # of the second of two classes
        return raw.name if index == 1 else view.append("Neg", raw.name)
    if raw.link == "sigmoid":
        return view.column(raw.name, index)
    if view.width(raw.name) == 2:
        return view.append("Sub", view.column(raw.name, index), view.column(raw.name, 1 - index))
    return None


def divided_by_sum(view: ScoreView, name: str) -> str | None:
    """Return the tensor that is divided by its sum over columns, None without one."""
    quotient = view.match(name, ("Div", "top", "bottom"))
    total = view.producer(quotient["bottom"], passing=GUARDS) if quotient else None
    if quotient is None or total is None or total.op_type != "ReduceSum":
        return None
    axes = attribute(total, "axes") if len(total.input) < 2 else view.constant(total.input[1])
    if axes is None or list(axes) not in ([1], [-1]):
        return None
    top, terms = quotient["top"], view.origin(total.input[0], ("Abs",))
    guarded = view.match(top, ("Add", "p", "guard")) or {}
    return terms if terms in (top, *guarded.values()) else None
