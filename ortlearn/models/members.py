"""Estimators with members, and what they compute from the scores of these."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from .base import ModelDefinition, Route
from .encoders import ML
from .scores import Scores, difference, of_two_classes
from .writer import ModelWriter


class MembersDefinition(ModelDefinition):
    """Estimators with their members in ``estimators_``, each on all columns."""

    takes_columns = True

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        yield from (Route(member, columns, is_member=True) for member in model.estimators_)


def write_members(op: ModelWriter, model: Any, x: Any, columns: Sequence[Any] | None = None) -> list[Scores]:
    """Append every member of ``estimators_``, each on its columns of X where these are given."""
    members, n_features = model.estimators_, None if columns is None else model.n_features_in_
    op.siblings |= {id(member): (members, x, columns, n_features) for member in members}
    parts = [x if columns is None else op.columns(x, columns[i], n_features) for i in range(len(members))]
    return [
        op.write(member, part, f"estimators_[{i}]")
        for i, (member, part) in enumerate(zip(members, parts, strict=True))
    ]


def mean(op: ModelWriter, tensors: Sequence[str], weights: Iterable[float] | None = None) -> str:
    """Return the mean of some tensors of one shape, weighted where there are weights."""
    weights = None if weights is None else np.asarray(list(weights), dtype=op.float_dtype)
    if weights is not None:
        tensors = [op.Mul(name, w) for name, w in zip(tensors, weights / weights.sum(), strict=True)]
    total = tensors[0] if len(tensors) == 1 else op.Sum(*tensors)
    return total if weights is not None or len(tensors) == 1 else op.Div(total, float(len(tensors)))


def one_hot(op: ModelWriter, numbers: str, count: int) -> str:
    """Return a one in the column of each number, zeros elsewhere, from numbers of shape (n,)."""
    equal = op.Equal(op.Reshape(numbers, [-1, 1]), np.arange(count, dtype=np.int64))
    return op.Cast(equal, to=op.elem_type)


def aligned(op: ModelWriter, matrix: str, columns: Sequence[int], count: int) -> str:
    """Return a matrix with its columns at given positions among more, zeros elsewhere."""
    positions = np.asarray(columns, dtype=np.int64)
    if np.array_equal(positions, np.arange(count)):
        return matrix
    return op.MatMul(matrix, np.eye(count, dtype=op.float_dtype)[positions])


def positive_probability(op: ModelWriter, scores: Scores) -> str:
    """Return the probability of the second of two classes, of shape (n, 1)."""
    assert isinstance(scores.probabilities, str)
    return op.Gather(scores.probabilities, [1], axis=1)


def logit_of(op: ModelWriter, scores: Scores) -> str:
    """Return the logit of the second of two classes, of shape (n, 1)."""
    return scores.score if scores.n_outputs == 1 else difference(op, scores.score)


def decision_of(scores: Scores) -> str | None:
    """Return what ``decision_function`` of a classifier gives, None where the graph does not have it."""
    return None if scores.decision == "" else scores.decision or scores.score


def shares_of(op: ModelWriter, scores: Scores) -> str:
    """Return probabilities of shape (n, n_classes), made of the scores where the classifier has none."""
    if isinstance(scores.probabilities, str):
        return scores.probabilities
    if scores.n_outputs == 1:
        return of_two_classes(op, op.Sigmoid(scores.score))
    return op.Softmax(scores.score, axis=1)


def predicted_classes(op: ModelWriter, scores: Scores) -> str:
    """Return a one in the column of the class that a classifier predicts, zeros elsewhere: (n, n_classes).

    That may be another class than that of the largest score, as it is of votes.
    """
    classes = np.asarray(scores.classes)
    if scores.label is None:  # ONNX has no type for the classes
        return one_hot(op, op.ArgMax(shares_of(op, scores), axis=1, keepdims=0), len(classes))
    if classes.dtype.kind in "OUS":
        # onnx crashes on a LabelEncoder of a tensor whose type it does not know
        label = op.Cast(scores.label, to=TensorProto.STRING)
        numbers: dict[str, Any] = {"keys_strings": list(classes), "values_int64s": list(range(len(classes)))}
        label = op.node("LabelEncoder", label, domain=ML, default_int64=-1, **numbers)
        return one_hot(op, label, len(classes))
    equal = op.Equal(op.Reshape(scores.label, [-1, 1]), classes.astype(np.int64))
    return op.Cast(equal, to=op.elem_type)


def label_column(op: ModelWriter, scores: Scores, elem_type: int = TensorProto.INT64) -> str:
    """Return labels of shape (n,) as a column of numbers."""
    return op.Reshape(op.Cast(str(scores.label), to=elem_type), [-1, 1])


def given(op: ModelWriter, scores: Scores, method: str) -> str:
    """Return what a method gives another model as columns: of two classes, the probability of the second."""
    if scores.task == "regression":
        return scores.predicted
    if method == "predict":
        return label_column(op, scores, op.elem_type)
    if method == "decision_function":
        return str(decision_of(scores))
    shares = positive_probability(op, scores) if len(scores.classes) == 2 else str(scores.probabilities)
    return op.Log(shares) if method == "predict_log_proba" else shares
