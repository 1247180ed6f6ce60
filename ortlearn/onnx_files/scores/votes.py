"""Votes of members or of pairs of classes, which have no gradient, and what is trained in their place."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from ...graphs import node_inputs
from .graph_end import GraphEnd
from .links import RawScore, log_probabilities, raw_score

__all__ = ["vote_score", "with_shared_votes"]


def with_shared_votes(end: GraphEnd, name: str) -> str:
    """Return a tensor where every vote for the best class is the member's probabilities.

    Hard voting and boosting with votes (SAMME) give each member's best class a one and the others something
    else. In between, in the proportion of the member's probabilities, all of them learn; the graph's own
    outputs stay. The nodes after the votes are appended once more; without any votes it is the tensor itself.
    """
    path = list(end.nodes_before(name))[::-1]
    shares: dict[str, str] = {}
    for node in path:
        member = _member(end, node)
        if member is not None:
            shares[node.output[0]] = _share(end, node, member)
        elif shares.keys() & node_inputs(node):
            shares.update(end.append_copy(node, shares))
    return shares.get(name, name)


def _member(end: GraphEnd, node: NodeProto) -> str | None:
    """Return the scores m of ``Where(ArgMax(m) == classes, a, b)``, None for anything else."""
    if node.op_type != "Where":
        return None
    equal = end.producer(node.input[0])
    if equal is None or equal.op_type != "Equal":
        return None
    for name in equal.input:
        best = end.producer(end.before(name, ("Cast", "Reshape", "Unsqueeze")))
        if best is not None and best.op_type == "ArgMax":
            return end.origin(best.input[0])
    return None


def _share(end: GraphEnd, node: NodeProto, member: str) -> str:
    """Append ``b + (a - b) p``, with p the probabilities of a member."""
    op = end.op
    share = member if _are_probabilities(end, member) else op.Softmax(member, axis=1)
    end.copy_type(share, member)
    chosen, other = node.input[1], node.input[2]
    result = op.Add(other, op.Mul(op.Sub(chosen, other), share))
    end.copy_type(result, member)
    return result


def _are_probabilities(end: GraphEnd, member: str) -> bool:
    """Return whether scores are probabilities: under a link, or averages of leaves."""
    if raw_score(end, member) is not None:
        return True
    node = end.producer(member)
    linear = {"MatMul", "Gemm", "Neg", "Concat", "Sub"}
    while node is not None and node.op_type in linear | {"Add", "Mul"}:
        if node.op_type in linear:
            return False
        node = end.producer(node.input[0])
    return True


def vote_score(end: GraphEnd, label: str | None, output: str) -> RawScore | None:
    """Return the scores of a classifier that votes by pairs of classes; None for any other.

    Two classes have one score, calibrated where there are probabilities. More have the logarithms of their
    probabilities, or else the sums of the scores of their pairs, with which scikit-learn breaks ties:
    ``sum_(j > i) s_ij - sum_(j < i) s_ji`` for class i. ``label`` is the output with the classes, ``output``
    the one with decision scores or probabilities.
    """
    node = None if label is None else end.producer(label)
    index = None if node is None or node.op_type != "Gather" else end.producer(node.input[1])
    if index is None or len(index.input) != 1:
        return None
    binary = _binary_score(end, index)
    if binary is not None:
        return RawScore(_calibrated(end, binary, output) or binary, "sigmoid")
    voted = _voted_pairs(end, index)
    if voted is None:
        return None
    pairs, table = voted
    if _calibrated(end, pairs, output) is not None:
        return log_probabilities(end, output)
    # Integers, cast: a product with floats would be taken for one with weights.
    known = end.op.type(pairs)
    kind = TensorProto.FLOAT if known is None else known.elem_type
    rows = (end.op.shape(pairs) or (None,))[0]
    sums = end.op.MatMul(pairs, end.op.Cast(table, to=kind))
    return RawScore(end.op.set_type(sums, kind, (rows, table.shape[1])), "softmax")


def _chain(end: GraphEnd, node: NodeProto | None, op_types: tuple[str, ...]) -> NodeProto | None:
    """Follow first inputs through nodes of given operators, and return the last one."""
    for position, op_type in enumerate(op_types):
        if position and node is not None:
            node = end.producer(node.input[0])
        if node is None or node.op_type != op_type:
            return None
    return node


def _binary_score(end: GraphEnd, index: NodeProto) -> str | None:
    """Return z of ``not z < 0``."""
    below = _chain(end, index, ("Cast", "Not", "Less"))
    column = None if below is None else end.producer(below.input[0])
    if below is None or column is None or column.op_type != "Squeeze":
        return None
    zero = end.constant(below.input[1])
    return column.input[0] if zero is not None and not np.any(zero) else None


def _voted_pairs(end: GraphEnd, index: NodeProto) -> tuple[str, np.ndarray] | None:
    """Return the scores of the pairs whose signs vote, and the table of the classes of each pair."""
    votes = _chain(end, index, ("ArgMax", "MatMul"))
    table = None if votes is None else end.constant(votes.input[1])
    if votes is None or table is None or table.dtype.kind != "i":
        return None
    above = _chain(end, end.producer(votes.input[0]), ("Sub", "Add", "Cast", "Greater"))
    return None if above is None else (above.input[0], table)


def _calibrated(end: GraphEnd, score: str, output: str) -> str | None:
    """Return z of ``sigmoid(z), z = a s + b`` where the output goes through it; s itself or minus s."""
    for node in end.nodes_before(output):
        shifted = end.producer(node.input[0]) if node.op_type == "Sigmoid" else None
        scaled = None if shifted is None else _chain(end, shifted, ("Add", "Mul"))
        if scaled is None or shifted is None:
            continue
        inner = end.producer(scaled.input[0])
        negated = inner is not None and inner.op_type == "Neg" and inner.input[0] == score
        if negated or scaled.input[0] == score:
            return shifted.output[0]
    return None
