"""Votes of members, which have no gradient, taken as shares in what is trained."""

from __future__ import annotations

from onnx import NodeProto

from ...graphs import node_inputs
from .graph_end import GraphEnd
from .links import raw_score

__all__ = ["with_shared_votes"]


def with_shared_votes(end: GraphEnd, name: str) -> str:
    """Return a tensor where every vote for the best class is the member's probabilities.

    Hard voting and boosting with votes (SAMME) give each member's best class a one and the others
    something else. In between, in the proportion of the member's probabilities, all of them learn; the
    graph's own outputs stay what they are. The nodes after the votes are appended once more.

    Parameters
    ----------
    end : GraphEnd
        Graph.
    name : str
        What is computed from votes.

    Returns
    -------
    str
        The tensor itself where there are no votes.
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
    """Tell whether scores are probabilities: under a link, or averages of leaves."""
    if raw_score(end, member) is not None:
        return True
    node = end.producer(member)
    linear = {"MatMul", "Gemm", "Neg", "Concat", "Sub"}
    while node is not None and node.op_type in linear | {"Add", "Mul"}:
        if node.op_type in linear:
            return False
        node = end.producer(node.input[0])
    return True
