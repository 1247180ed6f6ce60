"""Classifiers of several labels at once: one score per label."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...models import Scores
from ...models.weight import Weight
from .decisions import decision_score
from .graph_end import GraphEnd
from .links import column_logit, logit, raw_score
from .outputs import Purpose, make_scores, split_outputs, write_signs

__all__ = ["multilabel_scores"]


def multilabel_scores(end: GraphEnd, purpose: Purpose, weights: Mapping[str, Weight]) -> Scores:
    """Return the scores of a classifier of several labels, whose sigmoids are the probabilities."""
    (output, *_), (label, *_) = split_outputs(end)
    scores = end.concat(_scores_of_labels(end, purpose, output))
    if any(node.op_type == "Binarizer" for node in end.nodes_before(label)):
        # skl2onnx compares scores with 0.5, as if probabilities; onnxruntime has no Binarizer in float64.
        write_signs(end, label, scores)
    return make_scores(
        end,
        "multilabel",
        scores,
        "sigmoid",
        label=label,
        probabilities=output if purpose.has_probabilities else None,
        classes=np.arange(purpose.n_labels),
        groups=(1,) * purpose.n_labels,
    )


def _scores_of_labels(end: GraphEnd, purpose: Purpose, output: str) -> list[str]:
    if not purpose.has_probabilities:
        return [decision_score(end, output).name]
    raw = raw_score(end, output)
    if raw is not None and raw.link == "sigmoid" and end.width(raw.name) == purpose.n_labels:
        return [raw.name]
    found = [column_logit(end, output, index) for index in range(purpose.n_labels)]
    known = [score for score in found if score is not None]
    return known if len(known) == len(found) else [logit(end, output) or ""]
