"""One model per class, pair of classes or output."""

from typing import Any

import numpy as np
from onnx import TensorProto

from ..losses import LogLoss
from .coupling import pair_table
from .members import (
    MembersDefinition,
    decision_of,
    given,
    label_column,
    logit_of,
    positive_probability,
    write_members,
)
from .objectives import Objective, common_objective
from .scores import Scores, indicator, joined, label_of, of_two_classes, regression, several_outputs
from .writer import ModelWriter


def _decisions(op: ModelWriter, members: list[Scores]) -> str:
    """Return the decisions of members of two classes side by side; empty where one has none."""
    found = [decision_of(member) for member in members]
    return "" if None in found else joined(op, [name for name in found if name is not None])


def _probabilities(op: ModelWriter, model: Any, members: list[Scores]) -> str | None:
    """Return the probabilities of the second classes side by side; None where the model has none."""
    if not hasattr(model, "predict_proba"):
        return None
    return joined(op, [positive_probability(op, member) for member in members])


class _Sums(MembersDefinition):
    """Estimators whose members are fitted apart: what all of them minimise is a sum."""

    flexible = None

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return common_objective(model.estimators_, total_weight)


class OneVsRestDefinition(_Sums):
    """OneVsRestClassifier: a model of two classes for each class, or for each label."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members, classes = write_members(op, model, x), model.classes_
        score = joined(op, [logit_of(op, member) for member in members])
        by_decision = hasattr(model.estimators_[0], "decision_function")
        shares, decision = _probabilities(op, model, members), _decisions(op, members)
        compared = decision if by_decision and decision else score
        above = op.Cast(op.Greater(compared, 0.0), to=TensorProto.INT64)
        if model.multilabel_:
            return indicator(op, score, classes, label=above, probabilities=shares, decision=decision)
        if len(members) == 1:
            number = op.Reshape(above, [-1])
            shares = None if shares is None else of_two_classes(op, shares)
        else:
            # of equal decisions, the last one counts
            number = op.ArgMax(compared, axis=1, keepdims=0, select_last_index=1)
            if shares is not None:
                total = op.ReduceSum(shares, [1], keepdims=1)
                shares = op.Div(shares, op.Where(op.Equal(total, 0.0), 1.0, total))
        outputs: dict[str, Any] = {"label": label_of(op, number, classes), "probabilities": shares}
        outputs |= {"decision": decision, "classes": classes}
        return Scores("classification", score, len(members), "sigmoid", **outputs)


def pair_decisions(op: ModelWriter, second: str, confidences: str, n_classes: int) -> tuple[str, str]:
    """Return the votes of pairs of classes with their confidences, and the sums s of the confidences.

    The decisions are ``votes + s / (3 (|s| + 1))``, as ``sklearn.utils.multiclass._ovr_decision_function``
    has them. Of each pair (i, j), i < j, ``second`` says whether it votes for j, and ``confidences`` is the
    confidence in j, both of shape (n, n_pairs).
    """
    signs = -pair_table(n_classes).astype(op.float_dtype)
    votes = op.Cast(second, to=op.elem_type)
    first, last = (signs < 0).astype(op.float_dtype), (signs > 0).astype(op.float_dtype)
    # votes for j where the pair votes for it, for i elsewhere
    counted = op.Add(op.MatMul(votes, last - first), first.sum(axis=0, keepdims=True))
    sums = op.MatMul(confidences, signs)
    return op.Add(counted, op.Div(sums, op.Mul(op.Add(op.Abs(sums), 1.0), 3.0))), sums


class OneVsOneDefinition(MembersDefinition):
    """OneVsOneClassifier: a model for each pair of classes."""

    def covers(self, model: Any) -> bool:
        return model.pairwise_indices_ is None

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        # trained are the sums of the confidences
        members, classes = write_members(op, model, x), model.classes_
        numbers = joined(op, [label_column(op, member) for member in members])
        by_decision = hasattr(model.estimators_[0], "decision_function")
        method = "decision_function" if by_decision else "predict_proba"
        confidences = joined(op, [given(op, member, method) for member in members])
        decision, sums = pair_decisions(op, op.Equal(numbers, 1), confidences, len(classes))
        if len(classes) == 2:
            decision = op.Gather(decision, [1], axis=1)
            above = op.Greater(decision, 0.0 if by_decision else 0.5)
            number = op.Reshape(op.Cast(above, to=TensorProto.INT64), [-1])
            score, link, count = logit_of(op, members[0]), "sigmoid", 1
        else:
            number = op.ArgMax(decision, axis=1, keepdims=0)
            score, link, count = sums, "softmax", len(classes)
        label = label_of(op, number, classes)
        return Scores("classification", score, count, link, label=label, decision=decision, classes=classes)


class MultiOutputRegressorDefinition(_Sums):
    """MultiOutputRegressor: a model for each output."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members = write_members(op, model, x)
        return regression(op, joined(op, [member.predicted for member in members]), len(members))


def _log_probabilities(op: ModelWriter, scores: Scores) -> str:
    """Return scores whose softmax is the probabilities: those of one against the rest are sigmoids."""
    return op.Neg(op.Softplus(op.Neg(scores.score))) if scores.link == "sigmoid" else scores.score


class MultiOutputClassifierDefinition(MembersDefinition):
    """MultiOutputClassifier: a model for each column of classes."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        found = common_objective(model.estimators_, total_weight)
        # of three classes or more, only the log loss is that of several outputs
        two = all(len(classes) == 2 for classes in model.classes_)
        return found if found is not None and (two or isinstance(found.loss, LogLoss)) else None

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members = write_members(op, model, x)
        scores = [logit_of(op, m) if len(m.classes) == 2 else _log_probabilities(op, m) for m in members]
        labels = [op.Reshape(str(member.label), [-1, 1]) for member in members]
        has_probabilities = hasattr(model, "predict_proba")
        shares = tuple(str(m.probabilities) for m in members) if has_probabilities else None
        return several_outputs(op, scores, labels, model.classes_, probabilities=shares)


def _chained(op: ModelWriter, model: Any, x: str) -> list[Scores]:
    """Append the members of a chain, each on the samples and what those before it give."""
    members: list[Scores] = []
    method = getattr(model, "chain_method_", "predict")
    for i, member in enumerate(model.estimators_):
        columns = [op.matrix(x), *(given(op, scores, method) for scores in members)]
        members.append(op.write(member, joined(op, columns), f"estimators_[{i}]"))
    return [members[int(position)] for position in np.argsort(model.order_)]


class RegressorChainDefinition(_Sums):
    """RegressorChain: each output's model also takes the outputs before it."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members = _chained(op, model, x)
        return regression(op, joined(op, [member.predicted for member in members]), len(members))


class ClassifierChainDefinition(_Sums):
    """ClassifierChain of labels of two classes: each label's model also takes the labels before it."""

    def covers(self, model: Any) -> bool:
        return all(len(classes) == 2 for classes in model.classes_)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members = _chained(op, model, x)
        scores = [logit_of(op, member) for member in members]
        labels = [label_column(op, member) for member in members]
        outputs = {"probabilities": _probabilities(op, model, members), "decision": _decisions(op, members)}
        return several_outputs(op, scores, labels, model.classes_, **outputs)
