"""Multiclass and multioutput meta-estimators."""

from collections.abc import Generator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from onnx import TensorProto
from scipy.sparse import hstack, issparse
from sklearn.base import is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.multiclass import OneVsRestClassifier, _ConstantPredictor

from ...losses import LogLoss
from ..base import ModelDefinition, Objective
from ..capabilities import SeparateParts, reproduces_samples
from ..columns import LOWEST
from ..forms import Transposed
from ..formulas.coupling import pair_table
from ..objectives import common_objective
from ..scores import Scores, classification, decisions, indicator, label_of, regression, several_outputs
from ..writer import ModelWriter
from .ensembles import (
    ONE_BY_ONE,
    MembersDefinition,
    label_column,
    logit_of,
    output_of,
    response,
    write_members,
)


def _decisions(op: ModelWriter, model: Any, members: list[Scores]) -> str:
    """Return the decisions of binary members as columns; empty if a member has none."""
    columns = [scores.decided for scores in members]
    known = all(columns) and all(hasattr(member, "decision_function") for member in model.estimators_)
    return op.joined(columns) if known else ""


def _probabilities(op: ModelWriter, model: Any, members: list[Scores]) -> str | None:
    """Return the probabilities of second classes as columns; None if a member has none."""
    if not all(hasattr(member, "predict_proba") for member in model.estimators_):
        return None
    return op.joined([output_of(op, member, "predict_proba") for member in members])


def _responses(op: ModelWriter, model: Any, members: list[Scores]) -> str:
    """Append the responses of members as columns, as ``sklearn.multiclass._predict_binary``."""
    pairs = zip(model.estimators_, members, strict=True)
    return op.joined([s.predicted if is_regressor(m) else response(op, m, s) for m, s in pairs])


def _threshold(model: Any) -> float:
    """Return the response above which the second class is predicted."""
    first = model.estimators_[0]
    return 0.0 if hasattr(first, "decision_function") and is_classifier(first) else 0.5


class ConstantPredictorDefinition(ModelDefinition):
    """Member for a label, or a bit of a code, that was constant in training."""

    untrained = "all training samples had the same label: there is nothing to train"
    takes_columns = True

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        value = float(model.y_[0])
        logit = np.log(LOWEST / (1 - LOWEST)) * (-1 if value > 0 else 1)
        rows = (
            op.constant([float(value) for value in row]) for row in ([logit], [value], [1 - value, value])
        )
        score, decision, shares = (op.repeated_row(x, row) for row in rows)
        classes = np.array([0, 1])
        return decisions(op, score, classes, decision=decision, probabilities=shares)


class _IndependentMembers(MembersDefinition):
    """Ensembles whose members are fitted independently; the objective is the sum over members."""

    flexible = None

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        members = [member for member in model.estimators_ if not isinstance(member, _ConstantPredictor)]
        if not members or is_classifier(model) != is_classifier(members[0]):
            return None  # classifiers whose members are regressors
        found = common_objective(members, total_weight)
        is_chain = hasattr(model, "order_")  # fitted on labels instead of the outputs of previous members
        return replace(found, differs=ONE_BY_ONE) if is_chain and found is not None else found


@cache
def _last_class_wins_ties() -> bool:
    """Return whether OneVsRestClassifier resolves ties to the last class, as older releases do."""
    model = OneVsRestClassifier(DummyClassifier(strategy="uniform")).fit([[0], [1], [2]], [0, 1, 2])
    return bool(model.predict([[0]])[0] == 2)


class OneVsRestDefinition(_IndependentMembers):
    """OneVsRestClassifier: a binary model for each class or label."""

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        members, classes = write_members(op, model, x), model.classes_
        responses = _responses(op, model, members)
        if any(map(is_regressor, model.estimators_)):
            score = op.Sub(responses, 0.5)
        else:
            score = op.joined([logit_of(op, member) for member in members])
        shares, decision = _probabilities(op, model, members), _decisions(op, model, members)
        above = op.Cast(op.Greater(responses, _threshold(model)), to=TensorProto.INT64)
        if model.multilabel_:
            return indicator(op, score, classes, label=above, probabilities=shares, decision=decision)
        if len(members) == 1:
            index = op.Reshape(above, [-1])
        else:
            index = op.ArgMax(responses, axis=1, keepdims=0, select_last_index=int(_last_class_wins_ties()))
        if shares is not None:
            shares = op.binary_probabilities(shares) if len(members) == 1 else op.normalized(shares)
        outputs: dict[str, Any] = {"label": label_of(op, index, classes), "probabilities": shares}
        outputs |= {"decision": decision, "classes": classes}
        return Scores("classification", score, len(members), "sigmoid", **outputs)


class OutputCodeDefinition(MembersDefinition):
    """OutputCodeClassifier: the class whose code word c is nearest to the responses r of the members."""

    # Scores are 2 r c - |c|^2, minus squared distances plus |r|^2 (Dietterich, T. G. and Bakiri, G., "Solving
    # multiclass learning problems via error-correcting output codes", JAIR 2 (1995), 263-286).

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        responses = _responses(op, model, write_members(op, model, x))
        words = op.parameter(model, "code_book_", form=Transposed(), role="weight")
        squares = op.ReduceSum(op.Mul(words, words), [0], keepdims=1)
        score = op.Sub(op.MatMul(responses, op.Mul(words, 2.0)), squares)
        return classification(op, score, "softmax", score, model.classes_, decision="")


def pair_decisions(op: ModelWriter, second: str, confidences: str, n_classes: int) -> tuple[str, str]:
    """Return the decisions of pairwise votes and confidences for the second class, and summed confidences."""
    # votes + s / (3 (|s| + 1)), s the sums, as sklearn.utils.multiclass._ovr_decision_function
    signs = -pair_table(n_classes).astype(op.float_dtype)
    votes = op.Cast(second, to=op.elem_type)
    first, last = (signs < 0).astype(op.float_dtype), (signs > 0).astype(op.float_dtype)
    # a pair (i, j) votes for j if its second class wins, otherwise for i
    counted = op.Add(op.MatMul(votes, last - first), first.sum(axis=0, keepdims=True))
    sums = op.MatMul(confidences, signs)
    return op.Add(counted, op.Div(sums, op.Mul(op.Add(op.Abs(sums), 1.0), 3.0))), sums


class OneVsOneDefinition(MembersDefinition):
    """OneVsOneClassifier: a model for each pair of classes."""

    def covers(self, model: Any) -> bool:
        return model.pairwise_indices_ is None

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        # summed confidences are trained
        if any(map(is_regressor, model.estimators_)):
            raise op.fail(model, "its members are regressors, which do not vote: use classifiers.")
        members, classes = write_members(op, model, x), model.classes_
        predicted = op.joined([label_column(op, member) for member in members])
        confidences = _responses(op, model, members)
        decision, sums = pair_decisions(op, op.Equal(predicted, 1), confidences, len(classes))
        if len(classes) == 2:
            decision = op.Gather(decision, [1], axis=1)
            above = op.Greater(decision, _threshold(model))
            index = op.Reshape(op.Cast(above, to=TensorProto.INT64), [-1])
            score, link, count = logit_of(op, members[0]), "sigmoid", 1
        else:
            index = op.ArgMax(decision, axis=1, keepdims=0)
            score, link, count = sums, "softmax", len(classes)
        label = label_of(op, index, classes)
        return Scores("classification", score, count, link, label=label, decision=decision, classes=classes)


def _outputs(model: Any, given: Any) -> Generator[tuple[Any, Any], Any, None]:
    """Yield the models of all outputs, and samples with its labels."""
    for i, part in enumerate(model.estimators_):
        yield part, replace(given, y=given.y[:, i])


def _links(model: Any, given: Any) -> Generator[tuple[Any, Any], Any, None]:
    """Yield the models of a chain, and samples with the outputs of previous models, after their training."""
    for part, output in zip(model.estimators_, model.order_, strict=True):
        trained = yield part, replace(given, y=given.y[:, output])
        columns = np.reshape(trained.predict(given.X), (-1, 1))
        joined = hstack([given.X, columns], "csr") if issparse(given.X) else np.hstack([given.X, columns])
        given = replace(given, X=joined)


class MultiOutputRegressorDefinition(_IndependentMembers):
    """MultiOutputRegressor, and RegressorChain, whose models also take the previous outputs."""

    capabilities = (
        SeparateParts(
            lambda model, given: (_links if hasattr(model, "order_") else _outputs)(model, given),
            lambda model, parts: setattr(model, "estimators_", parts),
            # solvers stop before small outputs beside large ones have reached the kinks of their losses
            applies=lambda model, loss: (
                loss.by_output
                if hasattr(model, "order")
                else reproduces_samples(model) or (loss.by_output and loss.kinks)
            ),
        ),
    )

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members = (_chained if hasattr(model, "order_") else write_members)(op, model, x)
        predicted = op.joined([member.predicted for member in members])
        if all(member.link == "log" and not member.target_transformers for member in members):
            logarithms = op.joined([member.score for member in members])
            return Scores("regression", logarithms, len(members), "log", predicted)
        return regression(op, predicted, len(members))


def _log_probabilities(op: ModelWriter, scores: Scores) -> str:
    """Return logits of the softmax, which for one-vs-rest scores are logarithms of sigmoids."""
    return op.log_sigmoids(scores.score) if scores.link == "sigmoid" else scores.score


class MultiOutputClassifierDefinition(MembersDefinition):
    """MultiOutputClassifier: a model for each column of classes."""

    flexible = None

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        found = common_objective(model.estimators_, total_weight)
        # for three classes or more, only the log loss is defined for several outputs
        all_binary = all(len(classes) == 2 for classes in model.classes_)
        return found if found is not None and (all_binary or isinstance(found.loss, LogLoss)) else None

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members = write_members(op, model, x)
        scores = [logit_of(op, m) if len(m.classes) == 2 else _log_probabilities(op, m) for m in members]
        labels = [op.Reshape(str(member.label), [-1, 1]) for member in members]
        has_probabilities = hasattr(model, "predict_proba")
        shares = tuple(str(m.probabilities) for m in members) if has_probabilities else None
        return several_outputs(op, scores, labels, model.classes_, probabilities=shares)


def _chained(op: ModelWriter, model: Any, x: str) -> list[Scores]:
    """Append the members of a chain, each on the samples and the outputs of previous members."""
    members: list[Scores] = []
    method = getattr(model, "chain_method_", "predict")
    for i, member in enumerate(model.estimators_):
        columns = op.as_samples([output_of(op, scores, method) for scores in members])
        members.append(op.write(member, op.joined([op.matrix(x), *columns]), f"estimators_[{i}]"))
    return [members[int(position)] for position in np.argsort(model.order_)]


class ClassifierChainDefinition(_IndependentMembers):
    """ClassifierChain of binary labels: each model also takes the previous labels."""

    def covers(self, model: Any) -> bool:
        return all(len(classes) == 2 for classes in model.classes_)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        members = _chained(op, model, x)
        scores = [logit_of(op, member) for member in members]
        labels = [label_column(op, member) for member in members]
        shares, decision = _probabilities(op, model, members), _decisions(op, model, members)
        return several_outputs(op, scores, labels, model.classes_, probabilities=shares, decision=decision)
