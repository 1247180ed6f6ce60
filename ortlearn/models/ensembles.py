"""Ensembles that average, vote or stack: voting, bagging, stacking."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..losses import LogLoss
from ..penalties import NoPenalty
from .base import Route
from .members import MembersDefinition, aligned, decision_of, given, mean, one_hot, shares_of, write_members
from .objectives import Objective, common_objective, objective_of
from .scores import Scores, classes_of_probabilities, classification, joined, label_of, log_shares, regression
from .writer import ModelWriter


def _mean_objective(model: Any, total_weight: float, weights: Any = None) -> Objective | None:
    """Return the members' loss at their mean, and the mean of their penalties.

    The scores of a mean of classifiers are the logarithms of probabilities: the log loss alone is for these.
    """
    found = common_objective(model.estimators_, total_weight)
    if found is None or (hasattr(model, "classes_") and not isinstance(found.loss, LogLoss)):
        return None
    if weights is not None and len(set(weights)) > 1 and not isinstance(found.penalty, NoPenalty):
        return None
    return found.with_penalty_times(1 / len(model.estimators_))


def _voted(
    op: ModelWriter,
    members: list[Scores],
    weights: Any,
    classes: np.ndarray,
    has_probabilities: bool = False,
    decision: str = "",
) -> Scores:
    """Return the outputs of a vote; trained are shares in the proportion of the members' probabilities."""
    count = len(classes)
    votes = mean(op, [one_hot(op, str(m.label), count) for m in members], weights)
    shares = mean(op, [aligned(op, shares_of(op, m), m.classes, count) for m in members], weights)
    probabilities = votes if has_probabilities else None
    score = log_shares(op, shares)
    outputs = {"probabilities": probabilities, "decision": decision}
    return classification(op, score, "softmax", votes, classes, **outputs)


class VotingDefinition(MembersDefinition):
    """VotingRegressor and VotingClassifier, soft and hard: the weighted mean of the members."""

    def covers(self, model: Any) -> bool:
        return not isinstance(getattr(model, "classes_", None), list)

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return _mean_objective(model, total_weight, model._weights_not_none)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members, weights = write_members(op, model, x), model._weights_not_none
        if not hasattr(model, "classes_"):
            return regression(op, mean(op, [m.predicted for m in members], weights), members[0].n_outputs)
        if model.voting == "hard":
            return _voted(op, members, weights, model.classes_)
        shares = mean(op, [shares_of(op, member) for member in members], weights)
        return classes_of_probabilities(op, shares, model.classes_)


class BaggingDefinition(MembersDefinition):
    """BaggingRegressor and BaggingClassifier: members on some of the columns each."""

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        for member, own in zip(model.estimators_, model.estimators_features_, strict=True):
            yield Route(member, [columns[i] for i in own] if columns else (), is_member=True)

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        # each member has its share of the samples
        return _mean_objective(model, total_weight * model._max_samples / model._n_samples)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members = write_members(op, model, x, model.estimators_features_)
        if not hasattr(model, "classes_"):
            return regression(op, mean(op, [m.predicted for m in members]), members[0].n_outputs)
        found = [decision_of(member) for member in members]
        has_decision = hasattr(model, "decision_function") and None not in found
        decision = mean(op, [str(name) for name in found]) if has_decision else ""
        if not hasattr(model.estimators_[0], "predict_proba"):
            return _voted(op, members, None, model.classes_, has_probabilities=True, decision=decision)
        count = len(model.classes_)
        shares = mean(op, [aligned(op, shares_of(op, m), m.classes, count) for m in members])
        return classes_of_probabilities(op, shares, model.classes_, decision=decision)


class StackingDefinition(MembersDefinition):
    """StackingRegressor and StackingClassifier: a last model on what the members give."""

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
        # a penalty is for the last model alone
        found = objective_of(model.final_estimator_, total_weight)
        return found if found is not None and isinstance(found.penalty, NoPenalty) else None

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        columns = [
            given(op, scores, method)
            for scores, method in zip(write_members(op, model, x), model.stack_method_, strict=True)
        ]
        if model.passthrough:
            columns.append(op.matrix(x))
        final = op.write(model.final_estimator_, joined(op, columns), "final_estimator_")
        if not hasattr(model, "classes_"):
            return final
        # the last model knows the classes by their numbers
        label = None if final.label is None else label_of(op, final.label, model.classes_)
        return replace(final, label=label, classes=model.classes_)

    def shape_predictions(self, model: Any, n_dimensions: int) -> Any:
        return model.final_estimator_
