"""Scores of support vector classifiers, whose label is a vote among pairs of classes."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from .graph_end import GraphEnd
from .links import RawScore, log_probabilities

__all__ = ["vote_score"]


def vote_score(end: GraphEnd, label: str | None, output: str) -> RawScore | None:
    """Return the scores of a classifier that votes by pairs of classes; None for any other.

    Two classes have one score, calibrated where there are probabilities. More have the logarithms of
    their probabilities, or else the sums of the scores of their pairs, with which scikit-learn breaks
    ties: ``sum_(j > i) s_ij - sum_(j < i) s_ji`` for class i.

    Parameters
    ----------
    end : GraphEnd
        Graph; the sum is appended.
    label : str or None
        Output with the classes.
    output : str
        Output with decision scores or probabilities.

    Returns
    -------
    RawScore or None
        None where the label is no vote.
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
