"""Scores and predictions of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from ..exceptions import ConversionError
from ..graphs import TensorType
from .columns import LOWEST, SampleWriter
from .fusion import FusedClasses, FusedLinear
from .label_positions import Positions

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
        Task, which determines the losses that apply. The scores of ``"unsupervised"`` are themselves the
        losses of the samples.
    score : str
        Scores of shape (n, k), which the loss compares with the labels.
    n_outputs : int
        Number k of scores per sample.
    link : {"identity", "log", "sigmoid", "softmax"}
        Link function from predictions to scores; ``"sigmoid"`` and ``"softmax"`` are names of the inverse.
    prediction : str or None
        Predictions of a regressor; None if they are the scores.
    label : str or None
        Predicted classes, or indices of clusters or components.
    probabilities : str, tuple of str or None
        Probabilities of shape (n, n_classes); for a classifier of several outputs, one matrix per output.
    decision : str or None
        Output of ``decision_function``; None if it is the scores, empty if the graph does not compute it.
    transformed : str or None
        Output of ``transform``.
    likelihood : str or None
        Log-likelihoods of the samples, of shape (n, 1).
    averaged : bool
        Whether ``score`` of an unsupervised model is the mean over samples instead of their sum.
    classes : ndarray, list of ndarray or None
        Classes; for several outputs with different classes, one array per output.
    groups : tuple of int
        Number of scores of each output of a classifier of several outputs.
    dtype : numpy.dtype
        Type of the scores.
    target_transformers : tuple of transformer
        Transformers of the labels before the loss, the outermost first.
    positions : Positions or None
        Positions of labels, if the labels of a sample are an array. The scores of a classifier are then of
        shape (n, positions, k), those of a regressor of shape (n, positions).
    appended_link : bool
        Whether the predictions of the estimator are the scores, and those of the graph their exponentials.
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
    appended_link: bool = False

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Shape of the scores, None for sizes that depend on X."""
        if self.positions is None:
            return None, self.n_outputs
        of_classes = (self.n_outputs,) if self.task == "classification" else ()
        return None, self.positions.count, *of_classes

    @property
    def type(self) -> TensorType:
        """Type and shape of the scores."""
        return TensorType(helper.np_dtype_to_tensor_dtype(self.dtype), self.shape)

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
        """Tensor of the predictions of a regressor."""
        return self.prediction or self.score

    def with_link(self, op: SampleWriter, link: str | None) -> Scores:
        """Return the scores of a regressor for a loss: predictions, or logarithms of them for ``"log"``."""
        if link == "log" and self.link != "log":
            return replace(self, link="log", prediction=op.Exp(self.score), appended_link=True)
        if link == "identity" and self.link == "log" and not self.target_transformers:
            return replace(self, link="identity", score=self.predicted, prediction=None)
        return self


def regression(op: SampleWriter, score: str, n_outputs: int = 1, link: str = "identity") -> Scores:
    """Return the outputs of a regressor: scores of shape (n, n_outputs), or their exponentials for "log"."""
    prediction = op.Exp(score) if link == "log" else None
    return Scores("regression", score, n_outputs, link, prediction)


def transformation(op: SampleWriter, transformed: Any, n_outputs: int) -> Scores:
    """Return the outputs of a transformer, whose scores are its output: a matrix, or columns with text."""
    if isinstance(transformed, str) and op.type(transformed) is None:
        op.set_type(transformed, op.elem_type, (None, n_outputs))
    return Scores("transformation", transformed, n_outputs, transformed=transformed)


def label_of(op: SampleWriter, index: str, classes: np.ndarray) -> str | None:
    """Return classes by their indices; None for classes that are fractions, which have no ONNX type."""
    classes = np.asarray(classes)
    if classes.dtype.kind == "f" and not np.all(classes == np.floor(classes)):
        return None
    return op.Gather(op.constant(_as_labels(classes)), index, axis=0)


def _as_labels(classes: np.ndarray) -> np.ndarray:
    """Return classes as text or int64."""
    classes = np.asarray(classes)
    return classes.astype(object) if classes.dtype.kind in "OUS" else classes.astype(np.int64)


def classification(
    op: SampleWriter, score: str, link: str, compared: str, classes: np.ndarray, **outputs: Any
) -> Scores:
    """Return the outputs of a classifier that predicts the class of the largest value in ``compared``."""
    label = label_of(op, op.ArgMax(compared, axis=1, keepdims=0), classes)
    if compared == score and link == "softmax" and len(classes) > 2:  # for two, the operator takes one column
        _declare_fused(op, score, label, classes, outputs.get("probabilities"))
    return Scores("classification", score, len(classes), link, label=label, classes=classes, **outputs)


def _declare_fused(
    op: SampleWriter, score: str, label: str | None, classes: np.ndarray, probabilities: str | None
) -> None:
    """Declare that a fused operator computes classes and probabilities from scores."""
    if op.float_dtype == np.float32 and label is not None and len(classes) > 1:
        form = op.fused.get(score)
        linear = form if isinstance(form, FusedLinear) else None
        op.fused[label] = FusedClasses(score, label, _as_labels(classes), probabilities or "", linear)


def class_scores(op: SampleWriter, score: str, classes: np.ndarray, **outputs: Any) -> Scores:
    """Return the outputs of a classifier whose probabilities are the softmax of its scores."""
    outputs["probabilities"] = op.Softmax(score, axis=1)
    return classification(op, score, "softmax", score, classes, **outputs)


def one_against_rest(op: SampleWriter, score: str, classes: np.ndarray) -> Scores:
    """Return the outputs of a classifier whose probabilities are sigmoids divided by their sum."""
    # by logarithms, as sigmoids of very low scores vanish in float32
    probabilities = op.Softmax(op.log_sigmoids(score), axis=1)
    return classification(op, score, "sigmoid", score, classes, probabilities=probabilities)


def classes_of_probabilities(
    op: SampleWriter, probabilities: str, classes: np.ndarray, lowest: float = LOWEST, **outputs: Any
) -> Scores:
    """Return the outputs of a classifier whose scores are log-probabilities, clipped at ``lowest``."""
    score = op.log_probabilities(probabilities, lowest)
    outputs["probabilities"] = probabilities
    return classification(op, score, "softmax", probabilities, classes, **outputs)


def decisions(
    op: SampleWriter,
    score: str,
    classes: np.ndarray,
    zero_is_second: bool = False,
    sigmoids: str | None = None,
    **outputs: Any,
) -> Scores:
    """Return the outputs of a classifier with a decision for each class, or for the second of two.

    The second class is predicted for a positive score, and for zero with ``zero_is_second``. ``sigmoids``
    are probabilities, if they are the sigmoids of the score.
    """
    if sigmoids is not None:
        outputs["probabilities"] = sigmoids
    if len(classes) != 2:
        return classification(op, score, "sigmoid", score, classes, **outputs)
    above = op.GreaterOrEqual(score, 0.0) if zero_is_second else op.Greater(score, 0.0)
    label = label_of(op, op.Reshape(op.Cast(above, to=TensorProto.INT64), [-1]), classes)
    if not zero_is_second:  # the operator predicts the first class for zero
        _declare_fused(op, score, label, classes, sigmoids)
    return Scores("classification", score, 1, "sigmoid", **{"label": label, "classes": classes, **outputs})


def detection(op: SampleWriter, score: str, zero_is_inlier: bool = True) -> Scores:
    """Return the outputs of an outlier detector: 1 for positive decisions, -1 for negative ones."""
    return decisions(op, score, np.array([-1, 1]), zero_is_second=zero_is_inlier)


def binary_classes(op: SampleWriter, score: str, classes: np.ndarray, **outputs: Any) -> Scores:
    """Return the outputs of a binary classifier from the logit of the second class, of shape (n, 1)."""
    return decisions(op, score, classes, sigmoids=op.binary_probabilities(op.Sigmoid(score)), **outputs)


def indicator(op: SampleWriter, score: str, classes: np.ndarray, **outputs: Any) -> Scores:
    """Return the outputs of a multilabel classifier, with one score per label."""
    label, groups = op.Cast(op.Greater(score, 0.0), to=TensorProto.INT64), (1,) * len(classes)
    outputs = {"label": label, "classes": classes, "groups": groups, **outputs}
    return Scores("multilabel", score, len(classes), "sigmoid", **outputs)


def several_outputs(
    op: SampleWriter, scores: Sequence[str], labels: Sequence[str | None], classes: Any, **outputs: Any
) -> Scores:
    """Return the outputs of a classifier of several outputs, each with labels of shape (n, 1).

    An output of two classes has one score, the logit of the second class; other outputs have the logits of
    a softmax, one per class.
    """
    if min(map(len, classes)) < 2:
        raise ConversionError(
            "A classifier of several outputs cannot be written as ONNX if an output has only one class: "
            "remove this output."
        )
    groups = tuple(1 if len(known) == 2 else len(known) for known in classes)
    link = "sigmoid" if max(groups) == 1 else "softmax"
    label = None if None in labels else op.joined([label for label in labels if label is not None])
    outputs |= {"label": label, "classes": classes, "groups": groups}
    return Scores("multilabel", op.joined(scores), sum(groups), link, **outputs)


def multioutput(
    op: SampleWriter,
    probabilities: Sequence[str],
    classes: Sequence[np.ndarray],
    lowest: float = LOWEST,
    scored: Sequence[str] = (),
) -> Scores:
    """Return the outputs of a classifier from probabilities of each output, scored by others if given."""
    scores, labels = [], []
    for predicted, smooth, known in zip(probabilities, scored or probabilities, classes, strict=True):
        logarithms = op.log_probabilities(smooth, lowest)
        scores.append(op.difference(logarithms) if len(known) == 2 else logarithms)
        labels.append(label_of(op, op.ArgMax(predicted, axis=1, keepdims=1), known))
    return several_outputs(op, scores, labels, classes, probabilities=tuple(probabilities))
