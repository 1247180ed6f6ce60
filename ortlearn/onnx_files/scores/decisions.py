"""Find the scores of decision functions and votes."""

from onnx import TensorProto

from ...graphs import node_inputs
from .graph_end import GraphEnd
from .links import RawScore, divided_by_sum, log_probabilities, raw_score

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


def decision_score(end: GraphEnd, name: str) -> RawScore:
    """Return the scores of a decision function, with one column for two classes."""
    # One-vs-one votes, which have no gradient, are replaced by the sums of pairwise scores that break ties.
    if len(end.op.shape(name) or ()) == 1:
        return RawScore(end.as_column(name), "sigmoid")
    found, terms, single = confidence_score(end, name), divided_by_sum(end, name), single_score(end, name)
    if found is not None or terms is not None:
        return found or decision_score(end, terms or "")
    columns = end.parts_of(name)
    if single is None and columns is not None:
        return RawScore(end.concat([decision_score(end, column).name for column in columns]), "sigmoid")
    return RawScore(single or end.origin(name), "sigmoid")


def confidence_score(end: GraphEnd, name: str) -> RawScore | None:
    """Return the sums of pairwise scores that break ties of one-vs-one votes, None without votes."""
    found = end.match(name, CONFIDENCES)
    if found is None:
        return None
    single = single_score(end, found["s"])
    return RawScore(found["s"], "softmax") if single is None else RawScore(single, "sigmoid")


def single_score(end: GraphEnd, name: str) -> str | None:
    """Return z of a matrix with columns -z (or 1 - z) and z, or of its second column; None for others."""
    matrix, index = end.column_of(name) or (name, 1)
    columns = end.parts_of(matrix)
    if columns is None or len(columns) != 2 or index != 1:
        return None
    score = columns[1]
    return (single_score(end, score) or score) if _comes_from(end, columns[0], OPPOSITES, score) else None


def _comes_from(end: GraphEnd, name: str, patterns: tuple, score: str) -> bool:
    """Return whether a tensor matches a pattern with a given score as z."""
    return any((end.match(name, pattern) or {}).get("z") == score for pattern in patterns)


def with_shared_votes(end: GraphEnd, name: str) -> str:
    """Return a tensor with votes of hard voting and SAMME replaced by probabilities of the members."""
    # Nodes after votes are copied. Without votes, the tensor is returned.
    shares: dict[str, str] = {}
    for node in list(end.nodes_before(name))[::-1]:
        vote = end.match(node.output[0], VOTE) if node.op_type == "Where" else None
        if vote is not None:
            member, other = vote["m"], vote["other"]
            share = member if _are_probabilities(end, member) else end.append("Softmax", member, axis=1)
            size = end.op.Mul(end.op.Sub(vote["one"], other), share)
            shares[node.output[0]] = end.append("Add", other, size, like=member)  # b + (a - b) p
        elif shares.keys() & node_inputs(node):
            shares.update(end.append_copy(node, shares))
    return shares.get(name, name)


def _are_probabilities(end: GraphEnd, member: str) -> bool:
    """Return whether scores are probabilities: a sigmoid, a softmax, or an average of leaf values."""
    if raw_score(end, member) is not None:
        return True
    node = end.producer(member, passing=("Add", "Mul"))
    return node is None or node.op_type not in LINEAR


def vote_score(end: GraphEnd, label: str | None, output: str) -> RawScore | None:
    """Return the scores of a classifier with one-vs-one votes, None for others."""
    # Two classes have one score, which is calibrated if there are probabilities. Several classes have
    # log-probabilities, or the sums of pairwise scores sum_(j > i) s_ij - sum_(j < i) s_ji for class i.
    node = None if label is None else end.producer(label, "Gather")
    if node is None:
        return None
    binary = end.match(node.input[1], SECOND_OF_TWO)
    if binary is not None:
        return RawScore(_calibrated(end, binary["z"], output) or binary["z"], "sigmoid")
    voted = end.match(node.input[1], PAIR_VOTES)
    table = None if voted is None else end.constant(voted["table"])
    if voted is None or table is None or table.dtype.kind != "i":
        return None
    pairs = voted["z"]
    if _calibrated(end, pairs, output) is not None:
        return log_probabilities(end, output)
    known = end.op.type(pairs)
    # cast from integers, since float operands of products are recognised as weights
    both = end.op.Cast(table, to=TensorProto.FLOAT if known is None else known.elem_type)
    return RawScore(end.append("MatMul", pairs, both, columns=table.shape[1]), "softmax")


def _calibrated(end: GraphEnd, score: str, output: str) -> str | None:
    """Return z = a s + b or b - a s if the output depends on ``sigmoid(z)``, None otherwise."""
    for node in end.nodes_before(output):
        if node.op_type == "Sigmoid" and _comes_from(end, node.output[0], CALIBRATED, score):
            return end.origin(node.input[0])
    return None
