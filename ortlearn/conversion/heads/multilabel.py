"""Classifiers of several columns of classes: one score per label, or one per class of each output."""

from __future__ import annotations

from collections.abc import Mapping

from sklearn.multiclass import OneVsRestClassifier

from ...exceptions import ConversionError
from ..preparation.kinds import ModelKind
from ..weights.weight_selection import Weight
from .base import Head, make_head
from .decisions import decision_score
from .graph_end import GraphEnd
from .labels import write_signs
from .links import column_logit, log_probabilities, logit, raw_score
from .own_decisions import members_decision

__all__ = ["multilabel_head"]


def multilabel_head(end: GraphEnd, kind: ModelKind, weights: Mapping[str, Weight]) -> Head:
    """Return the head of a classifier of several outputs.

    An output of two classes has one score, whose sigmoid is the probability of the second; one of
    more classes has a score for each, under a softmax of their own.
    """
    label, output = end.outputs[0], end.outputs[1]
    if not isinstance(kind.classes, list) or _has_a_column_per_label(end, kind, output):
        scores = _indicator_scores(end, kind, output, len(kind.classes))
        groups = (1,) * len(kind.classes)
        probabilities: str | tuple[str, ...] = output
    else:
        sizes = [len(classes) for classes in kind.classes]
        if min(sizes) < 2:
            raise ConversionError("Every output of a classifier needs two classes at least.")
        matrices = _matrices(end, output, sizes)
        if kind.has_probabilities:
            matrices = [
                matrix if end.width(matrix) == size else end.as_matrix(matrix, size)
                for matrix, size in zip(matrices, sizes, strict=True)
            ]
        scores = [_scores_of(end, kind, m, size) for m, size in zip(matrices, sizes, strict=True)]
        groups = tuple(1 if size == 2 else size for size in sizes)
        probabilities = tuple(matrices)
    end.note_columns(label, len(groups))
    if isinstance(probabilities, str):
        end.note_columns(probabilities, len(groups))
    against_rest = not kind.has_probabilities and isinstance(kind.core, OneVsRestClassifier)
    if against_rest or any(node.op_type == "Binarizer" for node in end.nodes_before(label)):
        # skl2onnx compares scores with 0.5, as if probabilities; onnxruntime has no Binarizer in float64.
        write_signs(end, label, end.concat(scores))
    link = "sigmoid" if max(groups) == 1 else "softmax"
    return make_head(
        end,
        "multilabel",
        end.concat(scores),
        link,
        label=label,
        probabilities=probabilities if kind.has_probabilities else None,
        classes=kind.classes,
        decision=members_decision(kind.core),
        groups=groups,
    )


def _has_a_column_per_label(end: GraphEnd, kind: ModelKind, output: str) -> bool:
    """Tell whether outputs of two classes share one matrix, as those of a chain do."""
    return end.width(output) == len(kind.classes) and all(len(classes) == 2 for classes in kind.classes)


def _indicator_scores(end: GraphEnd, kind: ModelKind, output: str, n_labels: int) -> list[str]:
    """Return the scores of a matrix with a column per label."""
    if not kind.has_probabilities:
        return [decision_score(end, output).name]
    raw = raw_score(end, output)
    if raw is not None and raw.link == "sigmoid" and end.width(raw.name) == n_labels:
        return [raw.name]
    found = [column_logit(end, output, index) for index in range(n_labels)]
    if None in found:
        return [logit(end, output) or ""]
    return [score for score in found if score is not None]


def _matrices(end: GraphEnd, output: str, sizes: list[int]) -> list[str]:
    """Return the probabilities of each output as a matrix."""
    node = end.producer(output)
    if node is not None and node.op_type == "SequenceConstruct":
        return end.inputs(node)
    shape = end.op.shape(output)
    if shape is not None and len(shape) == 3:  # (outputs, rows, classes)
        matrices = []
        for index, size in enumerate(sizes):
            part = end.op.Gather(output, index, axis=0)
            known = end.type(output)
            assert known is not None
            end.op.set_type(part, known.elem_type, (shape[1], shape[2]))
            matrices.append(part if shape[2] == size else end.columns(part, 0, size))
        return matrices
    raise ConversionError(f"Output {output!r} of a classifier of several outputs has an unknown layout.")


def _scores_of(end: GraphEnd, kind: ModelKind, matrix: str, size: int) -> str:
    if not kind.has_probabilities:
        return decision_score(end, matrix).name
    if size == 2:
        return column_logit(end, matrix, 1) or logit(end, end.column(matrix, 1)) or ""
    raw = raw_score(end, matrix)
    if raw is not None and raw.link == "softmax":
        return raw.name
    if raw is not None and end.width(raw.name) == size:  # sigmoids, divided by their sum
        return end.unary("Neg", end.unary("Softplus", end.unary("Neg", raw.name)))
    return log_probabilities(end, matrix).name
