"""Scores of a model, which are trained, and the predictions that are made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

if TYPE_CHECKING:
    from .writer import ModelWriter

__all__ = [
    "LOWEST",
    "Scores",
    "binary_classes",
    "class_scores",
    "classes_of_probabilities",
    "decisions",
    "indicator",
    "label_of",
    "of_two_classes",
    "one_against_rest",
    "regression",
    "transformation",
]

#: Probabilities below it count as this one: the loss of a sample stays below ``-log(LOWEST)``, and a
#: probability of exactly zero, which a leaf or a vote can give, has no gradient instead of an infinite one.
LOWEST = 1e-5


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
    classes : ndarray, list of ndarray or None
        Classes, one array per output where each has its own.
    groups : tuple of int
        Numbers of scores of each output of a classifier of several outputs.
    dtype : numpy.dtype
        Type of the scores.
    target_transformers : tuple of transformer
        What labels go through before the loss sees them, the outermost first.
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
    classes: Any = None
    groups: tuple[int, ...] = ()
    target_transformers: tuple[Any, ...] = ()
    dtype: np.dtype = np.dtype(np.float32)

    @property
    def has_decisions(self) -> bool:
        """Whether the graph has what ``decision_function`` returns."""
        return self.decision != ""

    @property
    def predicted(self) -> str:
        """Tensor that a regressor predicts."""
        return self.prediction or self.score

    def with_link(self, op: ModelWriter, link: str) -> Scores:
        """Return a regression under the link of a loss.

        Parameters
        ----------
        op : ModelWriter
            Receives an exponential, where one is needed.
        link : {"identity", "log"}
            ``"log"`` makes the scores the logarithms of the predictions.

        Returns
        -------
        Scores
            The same where the link is the model's own.
        """
        if link != "log" or self.link == "log":
            return self
        return replace(self, link="log", prediction=op.Exp(self.score))


def regression(op: ModelWriter, score: str, n_outputs: int = 1, link: str = "identity") -> Scores:
    """Return the outputs of a regressor from its raw predictions.

    Parameters
    ----------
    op : ModelWriter
        Receives the nodes.
    score : str
        Raw predictions of shape (n, n_outputs).
    n_outputs : int, default=1
        Number of outputs.
    link : {"identity", "log"}, default="identity"
        ``"log"`` where predictions are the exponentials.

    Returns
    -------
    Scores
        Names of the tensors.
    """
    prediction = op.Exp(score) if link == "log" else None
    return Scores("regression", score, n_outputs, link, prediction)


def transformation(op: ModelWriter, transformed: Any, n_outputs: int) -> Scores:
    """Return the outputs of a transformer, which is trained on what it gives; columns where some are text."""
    if isinstance(transformed, str) and op.type(transformed) is None:
        op.set_type(transformed, op.elem_type, (None, n_outputs))
    return Scores("transformation", transformed, n_outputs, transformed=transformed)


def label_of(op: ModelWriter, number: str, classes: np.ndarray) -> str | None:
    """Return the classes of some numbers; None where ONNX has no type for the classes."""
    classes = np.asarray(classes)
    if classes.dtype.kind == "f" and not np.all(classes == np.floor(classes)):
        return None
    table = classes.astype(object) if classes.dtype.kind in "OUS" else classes.astype(np.int64)
    return op.Gather(op.constant(table), number, axis=0)


def _positive(op: ModelWriter, score: str) -> str:
    """Return 1 where a score of shape (n, 1) is above zero, 0 elsewhere, of shape (n,)."""
    return op.Reshape(op.Cast(op.Greater(score, 0.0), to=TensorProto.INT64), [-1])


def of_two_classes(op: ModelWriter, second: str) -> str:
    """Return the probabilities of two classes from that of the second, of shape (n, 1)."""
    return op.Concat(op.Sub(1.0, second), second, axis=1)


def binary_classes(op: ModelWriter, score: str, classes: np.ndarray, **outputs: Any) -> Scores:
    """Return the outputs of a classifier of two classes from the logit of the second, of shape (n, 1)."""
    second = op.Sigmoid(score)
    if "label" not in outputs:
        outputs["label"] = label_of(op, _positive(op, score), classes)
    return Scores(
        "classification",
        score,
        1,
        "sigmoid",
        probabilities=of_two_classes(op, second),
        classes=classes,
        **outputs,
    )


def class_scores(op: ModelWriter, score: str, classes: np.ndarray, **outputs: Any) -> Scores:
    """Return the outputs of a classifier whose probabilities are the softmax of its scores."""
    return Scores(
        "classification",
        score,
        len(classes),
        "softmax",
        label=label_of(op, op.ArgMax(score, axis=1, keepdims=0), classes),
        probabilities=op.Softmax(score, axis=1),
        classes=classes,
        **outputs,
    )


def one_against_rest(op: ModelWriter, score: str, classes: np.ndarray, **outputs: Any) -> Scores:
    """Return the outputs of a classifier whose probabilities are sigmoids divided by their sum."""
    # The softmax of log(sigmoid(score)): sigmoids themselves vanish in float32 where all scores are low.
    logarithms = op.Neg(op.Softplus(op.Neg(score)))
    return Scores(
        "classification",
        score,
        len(classes),
        "sigmoid",
        label=label_of(op, op.ArgMax(score, axis=1, keepdims=0), classes),
        probabilities=op.Softmax(logarithms, axis=1),
        classes=classes,
        **outputs,
    )


def decisions(op: ModelWriter, score: str, classes: np.ndarray, **outputs: Any) -> Scores:
    """Return the outputs of a classifier without probabilities, of one score for two classes."""
    binary = len(classes) == 2
    number = _positive(op, score) if binary else op.ArgMax(score, axis=1, keepdims=0)
    return Scores(
        "classification",
        score,
        1 if binary else len(classes),
        "sigmoid",
        label=label_of(op, number, classes),
        classes=classes,
        **outputs,
    )


def indicator(op: ModelWriter, score: str, classes: np.ndarray, probabilities: str | None = None) -> Scores:
    """Return the outputs of a classifier of several labels at once, one score per label."""
    return Scores(
        "multilabel",
        score,
        len(classes),
        "sigmoid",
        label=op.Cast(op.Greater(score, 0.0), to=TensorProto.INT64),
        probabilities=probabilities,
        classes=classes,
        groups=(1,) * len(classes),
    )


def classes_of_probabilities(
    op: ModelWriter, probabilities: str, classes: np.ndarray, lowest: float = LOWEST, **outputs: Any
) -> Scores:
    """Return the outputs of a classifier that computes probabilities: their logarithms are the scores.

    Probabilities below ``lowest`` count as this one.
    """
    return Scores(
        "classification",
        op.Log(op.Max(probabilities, lowest)),
        len(classes),
        "softmax",
        label=label_of(op, op.ArgMax(probabilities, axis=1, keepdims=0), classes),
        probabilities=probabilities,
        classes=classes,
        **outputs,
    )
