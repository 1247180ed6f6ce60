"""Graph outputs that a method of an estimator needs, and the function that computes its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit, softmax

from ..exceptions import ConversionError

if TYPE_CHECKING:
    from onnx import ModelProto

    from ..models import Scores
    from ..problem.problem import Problem

__all__ = ["METHODS", "MethodOutputs", "Plan", "check_predictor", "flat_decisions", "identity", "scores_of"]

#: Outputs of a graph, and the function that computes the result of a method from their values.
Plan = tuple[tuple[str, ...], Callable[..., Any]]
#: Methods that depend only on the outputs of the graph.
METHODS = ("predict", "predict_proba", "decision_function", "transform")


def scores_of(problem: Problem) -> Scores:
    """Return the scores of a graph; raise an error if it computes its own loss."""
    scores = problem.trainable.scores
    if scores is None:
        raise ConversionError(
            "The graph computes its own loss, and which of its outputs are scores is unknown: call predict."
        )
    return scores


def check_predictor(problem: Problem, method: str) -> None:
    """Raise an error if a method cannot be computed from an array by the graph alone."""
    trainable = problem.trainable
    if method not in METHODS:
        raise ValueError(f"method={method!r} must be one of {', '.join(map(repr, METHODS))}.")
    if not trainable.takes_numbers:
        raise ValueError(
            "predictor() requires a model whose graph takes a matrix of numbers, and this one reads columns "
            f"of several types, or has steps that run in scikit-learn. Call {method} instead."
        )
    if method == "transform" and (trainable.scores is None or trainable.scores.transformed is None):
        raise ValueError(
            "predictor('transform') requires a graph with the transformation, which this one lacks: call "
            "transform instead."
        )


def flat_decisions(problem: Problem, values: np.ndarray) -> np.ndarray:
    """Return values of scores in the shape of ``decision_function``: one per sample for two classes."""
    scores = problem.trainable.scores
    if scores is not None and scores.positions is not None:
        axis = scores.positions.class_axis
        if axis is None or scores.n_outputs > 2:
            return values
        return np.diff(values, axis=axis).squeeze(axis) if scores.n_outputs == 2 else values.squeeze(axis)
    if values.shape[1] == 2 and len(problem.targets.classes) == 2 and not problem.is_multilabel:
        return values[:, 1] - values[:, 0]
    return values.ravel() if values.shape[1] == 1 else values


class MethodOutputs:
    """Plans of :data:`METHODS` for a problem and the graph with its outputs."""

    def __init__(self, problem: Problem, model: ModelProto):
        self.problem = problem
        self.model = model

    def plan(self, method: str) -> Plan:
        """Return the plan of a method."""
        return getattr(self, f"_{method}")()

    def _predict(self) -> Plan:
        outputs, finish = self._dense_predict()
        if self.problem.targets.sparse:
            return outputs, lambda *found: csr_matrix(finish(*found))
        return outputs, finish

    def _dense_predict(self) -> Plan:
        scores, targets = self.problem.trainable.scores, self.problem.targets
        classes = targets.classes
        if scores is not None and scores.positions is not None:
            outputs, predicted = self._predict_positions(scores)
            positions = scores.positions
            return outputs, lambda *found: positions.labels_like(predicted(*found), targets.ndim)
        if scores is not None and scores.task == "multilabel":
            n_outputs = len(scores.groups)
            dtype = np.result_type(*classes) if isinstance(classes, list) else np.int64
            return (str(scores.label),), lambda found: found.reshape(-1, n_outputs).astype(dtype)
        if scores is not None and classes is not None and not self._has_labels(scores):
            outputs, shares = self._predict_proba()
            return outputs, lambda *found: classes[np.argmax(shares(*found), axis=1)]
        if scores is not None and scores.label is not None:
            if classes is None:
                return (scores.label,), lambda found: found.reshape(-1)
            return (scores.label,), lambda found: found.reshape(-1).astype(classes.dtype)
        output = self._prediction_output() if scores is None else scores.prediction or scores.score

        def flat(values: np.ndarray) -> np.ndarray:
            return values.reshape(-1) if values.shape[1:] in ((), (1,)) else values

        return (output,), flat if targets.ndim == 1 else identity

    def _has_labels(self, scores: Scores) -> bool:
        """Return whether the graph returns classes, or class indices that equal the classes."""
        classes = self.problem.targets.classes
        named = scores.classes is not None or classes is None
        return scores.label is not None and (named or np.array_equal(classes, np.arange(len(classes))))

    def _predict_positions(self, scores: Scores) -> Plan:
        """Return the plan to predict each position."""
        if scores.task == "regression":
            return (str(scores.prediction or scores.score),), identity
        positions, classes = scores.positions, self.problem.targets.classes
        assert positions is not None
        axis = positions.class_axis
        if not self._has_labels(scores):
            outputs, shares = self._predict_proba()
            return outputs, lambda *found: classes[
                np.argmax(shares(*found), axis=-1 if axis is None else axis)
            ]

        def labels_of(labels: np.ndarray) -> np.ndarray:
            flat = axis is None or labels.ndim <= len(positions.shape) + 1
            return (labels if flat else labels.squeeze(axis)).astype(classes.dtype)

        return (str(scores.label),), labels_of

    def _prediction_output(self) -> str:
        own = self.problem.trainable.own_loss
        names = [v.name for v in self.model.graph.output if own is None or v.name != own.output]
        if not names:
            raise ConversionError(
                "The graph has no output besides its loss, so that it cannot predict: add an output with the "
                "predictions."
            )
        return names[0]

    def _predict_proba(self) -> Plan:
        scores = scores_of(self.problem)
        if isinstance(scores.probabilities, tuple):
            return scores.probabilities, lambda *found: list(found)
        if scores.positions is not None:
            return (str(scores.probabilities),), lambda values: _probabilities_of_positions(scores, values)
        are_raw = scores.probabilities == scores.score  # the output has the scores of a decision function
        is_classifier = scores.task == "classification"

        def shares(values: np.ndarray) -> np.ndarray:
            if are_raw:
                values = expit(values) if values.shape[1] == 1 else softmax(values, axis=1)
            one = values.shape[1] == 1 and is_classifier
            return np.hstack([1 - values, values]) if one else values

        return (str(scores.probabilities),), shares

    def _decision_function(self) -> Plan:
        scores = scores_of(self.problem)
        return (scores.decision or scores.score,), identity

    def _transform(self) -> Plan:
        return (str(scores_of(self.problem).transformed),), identity


def identity(values: np.ndarray) -> np.ndarray:
    """Return the values unchanged."""
    return values


def _probabilities_of_positions(scores: Scores, values: np.ndarray) -> np.ndarray:
    """Return class probabilities along the class axis, or a new last axis if scores have none."""
    assert scores.positions is not None
    axis = scores.positions.class_axis
    if scores.probabilities == scores.decision:
        values = softmax(values, axis=axis) if scores.n_outputs > 1 else expit(values)
    if scores.n_outputs > 1:
        return values
    values = np.expand_dims(values, -1) if axis is None else values
    return np.concatenate([1 - values, values], axis=-1 if axis is None else axis)
