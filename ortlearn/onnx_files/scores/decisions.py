"""Find the scores of decision functions and votes."""

from onnx import TensorProto

from ...graphs import node_inputs
from .links import RawScore, divided_by_sum, log_probabilities, raw_score
from .score_view import ScoreView

#: votes + s / (3 (|s| + 1)), where s breaks ties (``_ovr_decision_function`` of scikit-learn).
CONFIDENCES = ("Add", "votes", ("Div", "s", ("Mul", ("Add", ("Abs", "s"), "one"), "three")))
#: One for the best class of a member m, another constant for other classes.
VOTE = ("Where", ("Equal", ("ArgMax", "m"), "classes"), "one", "other")
OPPOSITES = (("Neg", "z"), ("Mul", "z", "minus"), ("Sub", "one", "z"))  # minus z, or one minus z
#: Sigmoids of a z + b, and of b - a z.
CALIBRATED = (
    ("Sigmoid", ("Add", ("Mul", "z", "a"), "b")),
    ("Sigmoid", ("Add", ("Mul", ("Neg", "z"), "a"), "b")),
)
SECOND_OF_TWO = ("Cast", ("Not", ("Less", ("Squeeze", "z"), 0)))  # not z < 0, of a column z
#: The class with most votes, which are the signs of pairwise scores.
PAIR_VOTES = ("ArgMax", ("MatMul", ("Sub", ("Add", ("Cast", ("Greater", "z", 0)), "wins"), 1), "table"))
#: Operators whose outputs are scores rather than probabilities.
LINEAR = {"MatMul", "Gemm", "Neg", "Concat", "Sub"}


def decision_score(view: ScoreView, name: str) -> RawScore:
    """Return the scores of a decision function, with one column for two classes."""
    # One-vs-one votes, which have no gradient, are replaced by the sums of pairwise scores that break ties.
    if len(view.op.shape(name) or ()) == 1:
        return RawScore(view.as_column(name), "sigmoid", decides=True)
    found, terms, single = confidence_score(view, name), divided_by_sum(view, name), single_score(view, name)
    if found is not None or terms is not None:
        return found or decision_score(view, terms or "")
    columns = view.columns_of(name)
    if single is None and columns is not None:
        found_columns = [decision_score(view, column).name for column in columns]
        return RawScore(view.concat(found_columns), "sigmoid", decides=True)
    return RawScore(single or view.origin(name), "sigmoid", decides=True)


def confidence_score(view: ScoreView, name: str) -> RawScore | None:
    """Return the sums of pairwise scores that break ties of one-vs-one votes, None without votes."""
    found = view.match(name, CONFIDENCES)
    if found is None:
        return None
    single = single_score(view, found["s"])
    link = "softmax" if single is None else "sigmoid"
    return RawScore(single or found["s"], link, decides=True)


def single_score(view: ScoreView, name: str) -> str | None:
    """Return z of a matrix with columns -z (or 1 - z) and z, or of its second column; None for others."""
    matrix, index = view.column_of(name) or (name, 1)
    columns = view.columns_of(matrix)
    if columns is None or len(columns) != 2 or index != 1:
        return None
    score = columns[1]
    return (single_score(view, score) or score) if _comes_from(view, columns[0], OPPOSITES, score) else None


def _comes_from(view: ScoreView, name: str, patterns: tuple, score: str) -> bool:
    """Return whether a tensor matches a pattern with a given score as z."""
    return any((view.match(name, pattern) or {}).get("z") == score for pattern in patterns)


def with_shared_votes(view: ScoreView, name: str) -> str:
    """Return a tensor with votes of hard voting and SAMME replaced by probabilities of the members."""
    # Nodes after votes are copied. Without votes, the tensor is returned.
    shares: dict[str, str] = {}
    for node in list(view.nodes_before(name))[::-1]:
        vote = view.match(node.output[0], VOTE) if node.op_type == "Where" else None
        if vote is not None:
            member, other = vote["m"], vote["other"]
            share = member if _are_probabilities(view, member) else view.append("Softmax", member, axis=1)
            size = view.op.Mul(view.op.Sub(vote["one"], other), share)
            shares[node.output[0]] = view.append("Add", other, size, like=member)  # b + (a - b) p
        elif shares.keys() & node_inputs(node):
            shares.update(view.append_copy(node, shares))
    return shares.get(name, name)


def _are_probabilities(view: ScoreView, member: str) -> bool:
    """Return whether scores are probabilities: a sigmoid, a softmax, or an average of leaf values."""
    if raw_score(view, member) is not None:
        return True
    node = view.producer(member, passing=("Add", "Mul"))
    return node is None or node.op_type not in LINEAR


def vote_score(view: ScoreView, label: str | None, output: str) -> RawScore | None:
    """Return the scores of a classifier with one-vs-one votes, None for others."""
    # Two classes have one score, which is calibrated if there are probabilities. Several classes have
    # log-probabilities, or the sums of pairwise scores sum_(j > i) s_ij - sum_(j < i) s_ji for class i.
    node = None if label is None else view.producer(label, "Gather")
    if node is None:
        return None
    binary = view.match(node.input[1], SECOND_OF_TWO)
    if binary is not None:
        calibrated = _calibrated(view, binary["z"], output)
        return RawScore(calibrated or binary["z"], "sigmoid", decides=calibrated is None)
    voted = view.match(node.input[1], PAIR_VOTES)
    table = None if voted is None else view.constant(voted["table"])
    if voted is None or table is None or table.dtype.kind != "i":
        return None
    pairs = voted["z"]
    if _calibrated(view, pairs, output) is not None:
        return log_probabilities(view, output)
    known = view.op.type(pairs)
    # cast from integers, since float operands of products are recognised as weights
    both = view.op.Cast(table, to=TensorProto.FLOAT if known is None else known.elem_type)
    return RawScore(view.append("MatMul", pairs, both, columns=table.shape[1]), "softmax", decides=True)


def _calibrated(view: ScoreView, score: str, output: str) -> str | None:
    """Return z = a s + b or b - a s if the output depends on ``sigmoid(z)``, None otherwise."""
    for node in view.nodes_before(output):
        if node.op_type == "Sigmoid" and _comes_from(view, node.output[0], CALIBRATED, score):
            return view.origin(node.input[0])
    return None
