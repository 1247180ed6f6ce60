"""Mixtures, clusters and outlier detectors."""

from __future__ import annotations

from collections.abc import Mapping

from ...exceptions import ConversionError
from ..preparation.kinds import ModelKind
from ..weights.weight_selection import Weight
from .base import Head, make_head
from .graph_end import GraphEnd
from .links import raw_score
from .outputs import split_outputs

__all__ = ["cluster_head", "mixture_head", "outlier_head"]


def mixture_head(end: GraphEnd, kind: ModelKind, weights: Mapping[str, Weight]) -> Head:
    """Return the head of a mixture: minus the log-likelihood of each row.

    ``-log sum_k exp(z_k)``, with z the log-densities of the components plus their log-weights
    (Bishop, "Pattern Recognition and Machine Learning", 2006, equation 9.14).
    """
    floats, labels = split_outputs(end)
    raw = raw_score(end, floats[0])
    if raw is None:
        raise ConversionError("The graph of the mixture does not show the log-densities of its components.")
    likelihood = end.op.ReduceLogSumExp(raw.name, [1], keepdims=1)
    end.op.set_type(likelihood, *_column_like(end, raw.name))
    score = end.unary("Neg", likelihood)
    return make_head(
        end,
        "unsupervised",
        score,
        "identity",
        label=labels[0] if labels else None,
        probabilities=floats[0],
        likelihood=likelihood,
    )


def cluster_head(end: GraphEnd, kind: ModelKind, weights: Mapping[str, Weight]) -> Head:
    """Return the head of KMeans: the squared distance of each row to the nearest centre.

    Its sum over rows is the inertia (Lloyd, "Least squares quantization in PCM", 1982).
    """
    floats, labels = split_outputs(end)
    distances = floats[0]
    root = end.producer(distances)
    if root is not None and root.op_type == "Sqrt":
        squares = end.origin(root.input[0])
    else:
        squares = end.op.Mul(distances, distances)
        end.copy_type(squares, distances)
    # The nearest centre is chosen, not differentiated.
    nearest = end.op.ArgMin(squares, axis=1, keepdims=1)
    score = end.op.GatherElements(squares, nearest, axis=1)
    end.op.set_type(score, *_column_like(end, squares))
    label = labels[0] if labels else None
    return make_head(end, "unsupervised", score, "identity", label=label, transformed=distances)


def _column_like(end: GraphEnd, name: str):
    known = end.type(name)
    assert known is not None
    rows = known.shape[0] if known.shape else None
    return known.elem_type, (rows, 1)


def outlier_head(end: GraphEnd, kind: ModelKind, weights: Mapping[str, Weight]) -> Head:
    """Return the head of an outlier detector: its decision function, above zero for inliers.

    It is trained on labels, 1 for inliers and -1 for outliers.
    """
    floats, labels = split_outputs(end)
    score = floats[0]
    shape = end.op.shape(score)
    if shape is None or len(shape) != 2 or shape[1] != 1:
        score = end.as_matrix(score, 1)
    return make_head(
        end, "classification", score, "sigmoid", label=labels[0] if labels else None, classes=kind.classes
    )
