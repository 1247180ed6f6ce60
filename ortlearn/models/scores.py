"""Scores of a model, which are trained, and the predictions that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from ..exceptions import ConversionError
from .columns import LOWEST
from .fusion import FusedClasses, FusedLinear
from .label_positions import Positions

if TYPE_CHECKING:
    from .writer import ModelWriter

__all__ = [
    "Scores",
    "binary_classes",
    "class_scores",
    "classes_of_probabilities",
    "decisions",
    "indicator",
    "regression",
    "several_outputs",
    "transformation",
]


@dataclass(frozen=True)
class Scores:
    """Names of the tensors of a model.

    Attributes
    ----------
    task : {"regression", "classification", "multilabel", "unsupervised", "transformation"}
        What the loss must be for. ``"unsupervised"`` has a loss of its own for each sample, no labels.
    score : str
        Tensor of shape (n, k) that the loss compares with the labels; it is what is trained.
    n_outputs : int
        k.
    link : {"identity", "log", "sigmoid", "softmax"}
        Function that turns scores into predictions or probabilities.
    prediction : str or None
        Predictions of a regressor; None for the scores.
    label : str or None
        Classes of a classifier, numbers of clusters or components.
    probabilities : str, tuple of str or None
        Probabilities of shape (n, n_classes); one matrix per output where each has classes of its own.
    decision : str or None
        What ``decision_function`` returns; None for the scores, empty where the graph does not have it.
    transformed : str or None
        What ``transform`` returns.
    likelihood : str or None
        Log-likelihoods of the samples, of shape (n, 1).
    averaged : bool
        Whether ``score`` of an unsupervised model is a mean over samples; their sum otherwise.
    classes : ndarray, list of ndarray or None
        Classes, one array per output where each has its own.
    groups : tuple of int
        Numbers of scores of each output of a classifier of several outputs.
    dtype : numpy.dtype
        Type of the scores.
    target_transformers : tuple of transformer
        What labels go through before the loss sees them, the outermost first.
    positions : Positions or None
        Labels of a sample that are an array; the scores of a classifier are then of shape (n, positions, k),
        those of a regressor of shape (n, positions).
    """

    task: str
    score: str
    n_outputs: int
    link: str = "identity"
    prediction: str | None = None
    label: str | None = None
    probabilities: str | tuple[str, ...] | None = None
    decision: str | None = None
    transformed: str | None = None
    likelihood: str | None = None
    averaged: bool = False
    classes: Any = None
    groups: tuple[int, ...] = ()
    target_transformers: tuple[Any, ...] = ()
    dtype: np.dtype = np.dtype(np.float32)
    positions: Positions | None = None

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Shape of the scores, None for sizes that X decides."""
        if self.positions is None:
            return None, self.n_outputs
        of_classes = (self.n_outputs,) if self.task == "classification" else ()
        return None, self.positions.count, *of_classes

    @property
    def has_decisions(self) -> bool:
        """Whether the graph computes ``decision_function``."""
        return self.decision != ""

    @property
    def decided(self) -> str:
        """Tensor of ``decision_function``; empty if the graph does not compute it."""
        return self.score if self.decision is None else self.decision

    @property
    def predicted(self) -> str:
        """Tensor that a regressor predicts."""
        return self.prediction or self.score

    def with_link(self, op: ModelWriter, link: str) -> Scores:
        """Return a regression whose scores are logarithms of its predictions if the link is ``"log"``."""
        if link != "log" or self.link == "log":
            return self
        return replace(self, link="log", prediction=op.Exp(self.score))


def regression(op: ModelWriter, score: str, n_outputs: int = 1, link: str = "identity") -> Scores:
    """Return the outputs of a regressor of scores (n, n_outputs), their exponentials with the link "log"."""
    prediction = op.Exp(score) if link == "log" else None
    return Scores("regression", score, n_outputs, link, prediction)


def transformation(op: ModelWriter, transformed: Any, n_outputs: int) -> Scores:
    """Return the outputs of a transformer, which is trained on its output; columns if some are text."""
    if isinstance(transformed, str) and op.type(transformed) is None:
        op.set_type(transformed, op.elem_type, (None, n_outputs))
    return Scores("transformation", transformed, n_outputs, transformed=transformed)


def label_of(op: ModelWriter, number: str, classes: np.ndarray) -> str | None:
    """Return the classes of some indices; None if ONNX has no type for the classes."""
    classes = np.asarray(classes)
    if classes.dtype.kind == "f" and not np.all(classes == np.floor(classes)):
        return None
    return op.Gather(op.constant(_table(classes)), number, axis=0)


def _table(classes: np.ndarray) -> np.ndarray:
    """Return classes in a type that ONNX has."""
    classes = np.asarray(classes)
    return classes.astype(object) if classes.dtype.kind in "OUS" else classes.astype(np.int64)


def classification(
    op: ModelWriter, score: str, link: str, compared: str, classes: np.ndarray, **outputs: Any
) -> Scores:
    """Return the outputs of a classifier whose label is the class of the largest number in ``compared``."""
    label = label_of(op, op.ArgMax(compared, axis=1, keepdims=0), classes)
    if compared == score and link == "softmax" and len(classes) > 2:  # two classes have two columns here
        _declare_classes(op, score, label, classes, outputs.get("probabilities"))
    return Scores("classification", score, len(classes), link, label=label, classes=classes, **outputs)


def _declare_classes(
    op: ModelWriter, score: str, label: str | None, classes: np.ndarray, probabilities: str | None
) -> None:
    """Declare that a fused operator makes classes and probabilities of scores."""
    if op.float_dtype == np.float32 and label is not None and len(classes) > 1:
        linear = op.fused.get(score)
        known = linear if isinstance(linear, FusedLinear) else None
        op.fused[label] = FusedClasses(score, label, _table(classes), probabilities or "", known)


def class_scores(op: ModelWriter, score: str, classes: np.ndarray, **outputs: Any) -> Scores:
    """Return the outputs of a classifier whose probabilities are the softmax of its scores."""
    outputs["probabilities"] = op.Softmax(score, axis=1)
    return classification(op, score, "softmax", score, classes, **outputs)


def one_against_rest(op: ModelWriter, score: str, classes: np.ndarray) -> Scores:
    """Return the outputs of a classifier whose probabilities are sigmoids divided by their sum."""
    # sigmoids themselves vanish in float32 where all scores are low
    probabilities = op.Softmax(op.log_sigmoids(score), axis=1)
    return classification(op, score, "sigmoid", score, classes, probabilities=probabilities)


def classes_of_probabilities(
    op: ModelWriter, probabilities: str, classes: np.ndarray, lowest: float = LOWEST, **outputs: Any
) -> Scores:
    """Return the outputs of a classifier scored by logarithms of probabilities, at least ``lowest``."""
    score = op.log_probabilities(probabilities, lowest)
    outputs["probabilities"] = probabilities
    return classification(op, score, "softmax", probabilities, classes, **outputs)


def decisions(
    op: ModelWriter,
    score: str,
    classes: np.ndarray,
    zero_is_second: bool = False,
    sigmoids: str | None = None,
    **outputs: Any,
) -> Scores:
    """Return the outputs of a classifier of decisions, one column of them for two classes.

    The second class has scores above zero, or from zero on with ``zero_is_second``; ``sigmoids`` are
    probabilities that are the sigmoids of the score.
    """
    if sigmoids is not None:
        outputs["probabilities"] = sigmoids
    if len(classes) != 2:
        return classification(op, score, "sigmoid", score, classes, **outputs)
    above = op.GreaterOrEqual(score, 0.0) if zero_is_second else op.Greater(score, 0.0)
    label = label_of(op, op.Reshape(op.Cast(above, to=TensorProto.INT64), [-1]), classes)
    if not zero_is_second:  # the operator takes the first of equal ones
        _declare_classes(op, score, label, classes, sigmoids)
    return Scores("classification", score, 1, "sigmoid", **{"label": label, "classes": classes, **outputs})


def detection(op: ModelWriter, score: str, zero_is_inlier: bool = True) -> Scores:
    """Return the outputs of a detector of outliers, -1, from decisions that are above zero for inliers, 1."""
    return decisions(op, score, np.array([-1, 1]), zero_is_second=zero_is_inlier)


def binary_classes(op: ModelWriter, score: str, classes: np.ndarray, **outputs: Any) -> Scores:
    """Return the outputs of a classifier of two classes from the logit of the second, of shape (n, 1)."""
    return decisions(op, score, classes, sigmoids=op.binary_probabilities(op.Sigmoid(score)), **outputs)


def indicator(op: ModelWriter, score: str, classes: np.ndarray, **outputs: Any) -> Scores:
    """Return the outputs of a classifier of several labels at once, one score per label."""
    label, groups = op.Cast(op.Greater(score, 0.0), to=TensorProto.INT64), (1,) * len(classes)
    outputs = {"label": label, "classes": classes, "groups": groups, **outputs}
    return Scores("multilabel", score, len(classes), "sigmoid", **outputs)


def several_outputs(
    op: ModelWriter, scores: Sequence[str], labels: Sequence[str | None], classes: Any, **outputs: Any
) -> Scores:
    """Return the outputs of a classifier of several outputs, each with labels of shape (n, 1).

    An output of two classes has one score, the logit of the second; one of more classes has a score for
    each, under a softmax.
    """
    if min(map(len, classes)) < 2:
        raise ConversionError(
            "A classifier of several outputs cannot be written as ONNX if an output has one class only: "
            "every output needs two classes at least. Leave that output out."
        )
    groups = tuple(1 if len(own) == 2 else len(own) for own in classes)
    link = "sigmoid" if max(groups) == 1 else "softmax"
    label = None if None in labels else op.joined([own for own in labels if own is not None])
    outputs |= {"label": label, "classes": classes, "groups": groups}
    return Scores("multilabel", op.joined(scores), sum(groups), link, **outputs)


def multioutput(
    op: ModelWriter,
    shares: Sequence[str],
    classes: Sequence[np.ndarray],
    lowest: float = LOWEST,
    scored: Sequence[str] = (),
) -> Scores:
    """Return the outputs of a classifier of several outputs from probabilities; scores may be of others."""
    scores, labels = [], []
    for own, smooth, known in zip(shares, scored or shares, classes, strict=True):
        logarithms = op.log_probabilities(smooth, lowest)
        scores.append(op.difference(logarithms) if len(known) == 2 else logarithms)
        labels.append(label_of(op, op.ArgMax(own, axis=1, keepdims=1), known))
    return several_outputs(op, scores, labels, classes, probabilities=tuple(shares))
