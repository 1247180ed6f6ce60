"""Ensembles: voting, bagging, stacking and AdaBoost, and outputs computed from scores."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto
from sklearn.tree import BaseDecisionTree
from sklearn.utils import check_array

from ...losses import LogLoss
from ...penalties import NoPenalty
from ..base import ModelDefinition, Objective, Route
from ..capabilities import (
    UNSEEN_OUTPUTS,
    Bags,
    CrossFitted,
    SeparateParts,
    ShiftedScores,
    capability_of,
    reproduces_samples,
)
from ..objectives import common_objective, objective_of, with_scaled_penalty
from ..scores import (
    Scores,
    classes_of_probabilities,
    classification,
    label_of,
    regression,
)
from ..trees.forests import GrowingBagging, GrowingBaggingOfClasses, total_of
from ..writer import UNSEEN, ModelWriter

#: Why the minimum of the objective of an ensemble is another model.
ONE_BY_ONE = "the fit minimises it for each member alone"


class MembersDefinition(ModelDefinition):
    """Base class of ensembles of ``estimators_`` that are all fitted on all columns."""

    takes_columns = True

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        yield from (Route(member, columns, is_member=True) for member in model.estimators_)


def write_members(op: ModelWriter, model: Any, x: Any, columns: Sequence[Any] | None = None) -> list[Scores]:
    """Append the members of ``estimators_``, each on its ``columns`` of X, by default all."""
    members, n_features = model.estimators_, None if columns is None else model.n_features_in_
    op.siblings |= {id(member): (members, x, columns, n_features) for member in members}
    parts = [x if columns is None else op.columns(x, columns[i], n_features) for i in range(len(members))]
    return [op.write(member, parts[i], f"estimators_[{i}]") for i, member in enumerate(members)]


def mean(op: ModelWriter, tensors: Sequence[str], weights: Iterable[float] | None = None) -> str:
    """Return the mean of tensors of equal shape, optionally weighted."""
    if weights is not None:
        factors = np.asarray(list(weights), dtype=op.float_dtype)
        tensors = [op.Mul(name, w) for name, w in zip(tensors, factors / factors.sum(), strict=True)]
    total = tensors[0] if len(tensors) == 1 else total_of(op, tensors)
    return total if weights is not None or len(tensors) == 1 else op.Div(total, float(len(tensors)))


def expanded(op: ModelWriter, matrix: str, columns: Sequence[int], count: int) -> str:
    """Return a matrix of ``count`` columns, with those of ``matrix`` at positions and zeros elsewhere."""
    positions = np.asarray(columns, dtype=np.int64)
    if np.array_equal(positions, np.arange(count)):
        return matrix
    return op.MatMul(matrix, np.eye(count, dtype=op.float_dtype)[positions])


def logit_of(op: ModelWriter, scores: Scores) -> str:
    """Return the logit of the second of two classes, of shape (n, 1)."""
    return scores.score if scores.n_outputs == 1 else op.difference(scores.score)


def probabilities_of(op: ModelWriter, scores: Scores) -> str:
    """Return probabilities of shape (n, n_classes), computed from scores if the classifier has none."""
    if isinstance(scores.probabilities, str):
        return scores.probabilities
    if scores.n_outputs == 1:
        return op.binary_probabilities(op.Sigmoid(scores.score))
    return op.Softmax(scores.score, axis=1)


def predicted_classes(op: ModelWriter, scores: Scores) -> str:
    """Return the one-hot predicted class, which may differ from that of the largest score."""
    classes = np.asarray(scores.classes)
    if scores.label is None:  # the type of the classes does not exist in ONNX
        return op.one_hot(op.ArgMax(probabilities_of(op, scores), axis=1, keepdims=0), len(classes))
    if classes.dtype.kind in "OUS":
        label = op.Cast(scores.label, to=TensorProto.STRING)
        return op.one_hot(op.look_up(label, classes.tolist(), range(len(classes)), default=-1), len(classes))
    equal = op.Equal(op.Reshape(scores.label, [-1, 1]), classes.astype(np.int64))
    return op.Cast(equal, to=op.elem_type)


def response(op: ModelWriter, estimator: Any, scores: Scores) -> str:
    """Return the decision function of a classifier as columns, or its probabilities if it has none."""
    by_decision = hasattr(estimator, "decision_function")
    if by_decision and not scores.decided:
        raise op.fail(estimator, "its decision_function is not supported: use another classifier.")
    return output_of(op, scores, "decision_function" if by_decision else "predict_proba")


def label_column(op: ModelWriter, scores: Scores, elem_type: int = TensorProto.INT64) -> str:
    """Return labels of shape (n,) as a numeric column."""
    return op.Reshape(op.Cast(str(scores.label), to=elem_type), [-1, 1])


def output_of(op: ModelWriter, scores: Scores, method: str) -> str:
    """Return the output of a method as columns; for two classes, only the probability of the second."""
    if scores.task == "regression":
        return scores.predicted
    if method == "predict":
        return label_column(op, scores, op.elem_type)
    if method == "decision_function":
        return scores.decided
    shares = str(scores.probabilities)
    if len(scores.classes) == 2:
        shares = op.Gather(shares, [1], axis=1)
    return op.Log(shares) if method == "predict_log_proba" else shares


def _mean_objective(model: Any, total_weight: float, weights: Any = None) -> Objective | None:
    """Return the loss common to the members (the log loss for classifiers) and the mean penalty."""
    found = common_objective(model.estimators_, total_weight)
    if found is None or (hasattr(model, "classes_") and not isinstance(found.loss, LogLoss)):
        return None
    if found.loss.link == "log":  # the score would be the logarithm of the mean prediction
        return None
    if weights is not None and len(set(weights)) > 1 and not isinstance(found.penalty, NoPenalty):
        return None
    scaled = with_scaled_penalty(found, 1 / len(model.estimators_))
    return None if scaled is None else replace(scaled, differs=ONE_BY_ONE)


def _voted(
    op: ModelWriter,
    members: list[Scores],
    weights: Any,
    classes: np.ndarray,
    has_probabilities: bool = False,
    decision: str = "",
) -> Scores:
    """Return the scores of hard voting, which is trained on the mean probabilities of the members."""
    count = len(classes)
    votes = mean(op, [op.one_hot(str(m.label), count) for m in members], weights)
    shares = mean(op, [expanded(op, probabilities_of(op, m), m.classes, count) for m in members], weights)
    outputs = {"probabilities": votes if has_probabilities else None, "decision": decision}
    return classification(op, op.log_probabilities(shares), "softmax", votes, classes, **outputs)


def common_offset(model: Any) -> float | None:
    """Return the offset of the members of a mean or median, None unless it is the same for all."""
    tables = [capability_of(member, ShiftedScores) for member in model.estimators_]
    pairs = zip(tables, model.estimators_, strict=True)
    offsets = {None if own is None or own.attribute else own.offset(member) for own, member in pairs}
    return offsets.pop() if len(offsets) == 1 else None


def _set_voters(model: Any, members: list[Any]) -> None:
    """Set the members of a fitted vote."""
    names = [name for name, member in model.named_estimators_.items() if member != "drop"]
    model.estimators_ = members
    model.named_estimators_.update(zip(names, members, strict=True))


class VotingDefinition(MembersDefinition):
    """VotingRegressor and VotingClassifier (soft and hard): the weighted mean of the members."""

    capabilities = (
        SeparateParts(lambda model, given: ((own, given) for own in model.estimators_), _set_voters),
    )

    def covers(self, model: Any) -> bool:
        return not isinstance(getattr(model, "classes_", None), list)

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return _mean_objective(model, total_weight, model._weights_not_none)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members, weights = write_members(op, model, x), model._weights_not_none
        if not hasattr(model, "classes_"):
            columns = [member.predicted for member in members]
            found = regression(op, mean(op, columns, weights), members[0].n_outputs)
            return replace(found, transformed=op.joined(columns)) if found.n_outputs == 1 else found
        if model.voting == "hard":
            found = _voted(op, members, weights, model.classes_)
            columns = [label_column(op, member, op.elem_type) for member in members]
            return replace(found, transformed=op.joined(columns))
        columns = [probabilities_of(op, member) for member in members]
        found = classes_of_probabilities(op, mean(op, columns, weights), model.classes_)
        return replace(found, transformed=op.joined(columns)) if model.flatten_transform else found


def _bags(model: Any, given: Any) -> Generator[tuple[Any, Any], Any, None]:
    """Yield the members of a bagging, and the samples and columns that each has drawn."""
    X = check_array(given.X, accept_sparse=("csr", "csc"), dtype=None, ensure_all_finite=False)
    bags = zip(model.estimators_, model.estimators_features_, model.estimators_samples_, strict=True)
    for part, columns, bag in bags:
        drawn, counts = np.unique(bag, return_counts=True)
        own = replace(given, X=X[:, columns]).take(drawn)
        if own.sample_weight is not None and not hasattr(model, "_sample_weight"):
            counts = counts * own.sample_weight  # later releases of scikit-learn draw by weight
        yield part, replace(own, sample_weight=counts)


class BaggingDefinition(MembersDefinition):
    """BaggingRegressor and BaggingClassifier: each member uses a subset of the columns."""

    capabilities: tuple[Any, ...] = (
        *(Bags(), GrowingBagging(), ShiftedScores(common_offset)),
        SeparateParts(
            _bags,
            lambda model, parts: setattr(model, "estimators_", parts),
            # trees are trained on samples that they have not drawn
            applies=lambda model, loss: (
                reproduces_samples(model) and not isinstance(model.estimator, BaseDecisionTree)
            ),
        ),
    )

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        for member, features in zip(model.estimators_, model.estimators_features_, strict=True):
            yield Route(member, [columns[i] for i in features] if columns else (), is_member=True)

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        # each member is fitted on a subset of the samples
        return _mean_objective(model, total_weight * model._max_samples / model._n_samples)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members = write_members(op, model, x, model.estimators_features_)
        if not hasattr(model, "classes_"):
            op.add_members(*(member.predicted for member in members))
            return regression(op, mean(op, [m.predicted for m in members]), members[0].n_outputs)
        decisions = [member.decided for member in members]
        has_decision = hasattr(model, "decision_function") and all(decisions)
        decision = mean(op, decisions) if has_decision else ""
        if not hasattr(model.estimators_[0], "predict_proba"):
            return _voted(op, members, None, model.classes_, has_probabilities=True, decision=decision)
        count = len(model.classes_)
        shares = [expanded(op, probabilities_of(op, member), member.classes, count) for member in members]
        op.add_members(*shares)
        return classes_of_probabilities(op, mean(op, shares), model.classes_, decision=decision)


class BaggingClassifierDefinition(BaggingDefinition):
    """BaggingClassifier."""

    capabilities = Bags(), GrowingBaggingOfClasses()


class StackingDefinition(MembersDefinition):
    """StackingRegressor and StackingClassifier: a final model on the outputs of the members."""

    capabilities = (
        CrossFitted(lambda model: model.cv != "prefit", lambda model: model.estimators_, "final_estimator"),
    )

    def covers(self, model: Any) -> bool:
        return not isinstance(getattr(model, "classes_", None), list)

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        yield from super().routes(model, columns)
        if model.passthrough:
            yield Route(None, columns)

    def children(self, model: Any) -> Iterator[Any]:
        yield from super().children(model)
        yield model.final_estimator_

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        # a penalty would apply to the final model only
        found = objective_of(model.final_estimator_, total_weight)
        if found is None or not isinstance(found.penalty, NoPenalty):
            return None
        return replace(found, differs=ONE_BY_ONE)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        has_outputs = hasattr(model.final_estimator_, UNSEEN_OUTPUTS)
        with op.inside(reason=UNSEEN if has_outputs else ""):
            pairs = zip(write_members(op, model, x), model.stack_method_, strict=True)
        columns = [output_of(op, scores, method) for scores, method in pairs]
        columns = op.as_samples(columns)
        if model.passthrough:
            columns.append(op.matrix(x))
        joined = op.joined(columns)
        if has_outputs:
            op.add_members(joined, replaced=True)
        final = replace(op.write(model.final_estimator_, joined, "final_estimator_"), transformed=joined)
        if not hasattr(model, "classes_"):
            return final
        # the final model predicts encoded labels
        label = None if final.label is None else label_of(op, final.label, model.classes_)
        return replace(final, label=label, classes=model.classes_)

    def shape_predictions(self, model: Any, n_dimensions: int) -> Any:
        return model.final_estimator_
