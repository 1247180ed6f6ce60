"""Regressors: what they predict is compared with the targets."""

from __future__ import annotations

from collections.abc import Mapping

from ...models import Scores
from ...models.weight import Weight
from .graph_end import GraphEnd
from .outputs import Purpose, make_scores, split_outputs

__all__ = ["regression_scores"]


def regression_scores(end: GraphEnd, purpose: Purpose, weights: Mapping[str, Weight]) -> Scores:
    """Return the scores of a regressor.

    With a log link the scores are what an Exp at the end of the graph takes, and where there is none,
    one is appended: the model then predicts ``exp(score)``.
    """
    output = split_outputs(end)[0][0]
    if purpose.link != "log":
        return make_scores(end, "regression", _as_matrix(end, output), purpose.link)
    own = _logarithm(end, output)
    if own is None:
        score = end.replace_output(output, columns=end.width(output) or 1)
        end.op.node("Identity", end.op.Exp(score), outputs=[output])
    else:
        score = own
    return make_scores(end, "regression", _as_matrix(end, score), purpose.link, prediction=output)


def _logarithm(end: GraphEnd, output: str) -> str | None:
    """Return what a prediction is the exponential of, where the graph ends so."""
    node = end.producer(output)
    while node is not None and node.op_type in ("Identity", "Reshape"):
        node = end.producer(node.input[0])
    return node.input[0] if node is not None and node.op_type == "Exp" else None


def _as_matrix(end: GraphEnd, name: str) -> str:
    """Return a prediction as a matrix."""
    name = end.origin(name)
    shape = end.op.shape(name)
    return end.as_matrix(name, 1) if shape is not None and len(shape) == 1 else name
