"""What scikit-learn's ``decision_function`` gives, where other scores are trained."""

from __future__ import annotations

from functools import reduce
from typing import Any

from onnx import NodeProto
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    StackingClassifier,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.svm import SVC, NuSVC

from ..converters.svm import votes_and_confidences
from ..preparation.kinds import last_step
from ..preparation.unwrapping import unwrap
from .base import NO_DECISION
from .decisions import single_score
from .graph_end import GraphEnd
from .links import RawScore, raw_score

__all__ = ["breaks_ties", "members_decision", "own_decision"]


def own_decision(end: GraphEnd, estimator: Any, output: str, raw: RawScore, has_votes: bool) -> str | None:
    """Return the tensor that a classifier decides by.

    Parameters
    ----------
    end : GraphEnd
        Graph; what it lacks is appended.
    estimator : estimator or None
        Fitted classifier; None for a graph of other origin.
    output : str
        Its probabilities or decision scores.
    raw : RawScore
        What is trained.
    has_votes : bool
        Whether that has shares in the place of votes.

    Returns
    -------
    str or None
        None where the trained scores are the decisions, :data:`.base.NO_DECISION` where no tensor is.
    """
    core = _deciding(estimator)
    if isinstance(core, SVC | NuSVC) and hasattr(core, "predict_proba"):
        return _of_pairs(end, core, output)
    if isinstance(core, AdaBoostClassifier):
        return _of_boosting(end, output, len(core.classes_))
    if isinstance(core, BaggingClassifier) and hasattr(core, "decision_function"):
        return _of_bagging(end, core, output, raw)
    if isinstance(core, GradientBoostingClassifier) and core.loss == "exponential":
        return _half(end, raw.name)  # probabilities are the sigmoid of twice the decisions
    if isinstance(core, OneVsOneClassifier) and len(core.classes_) == 2:
        return end.column(output, 1)
    return NO_DECISION if has_votes else members_decision(core)


def members_decision(core: Any) -> str | None:
    """Return None where the scores of members, one column each, are their decisions, or there are none."""
    if not isinstance(core, OneVsRestClassifier | ClassifierChain) or not hasattr(core, "decision_function"):
        return None
    return None if all(_decides_by_scores(member) for member in core.estimators_) else NO_DECISION


def breaks_ties(core: Any) -> bool:
    """Tell whether support vectors predict the class of the largest decision, not that of most votes."""
    return (
        isinstance(core, SVC | NuSVC)
        and core.break_ties
        and core.decision_function_shape == "ovr"
        and len(core.classes_) > 2
    )


def _deciding(estimator: Any) -> Any:
    """Return the classifier whose decisions are an estimator's own."""
    if estimator is None:
        return None
    core = last_step(unwrap(estimator).estimator)
    return _deciding(core.final_estimator_) if isinstance(core, StackingClassifier) else core


def _decides_by_scores(member: Any) -> bool:
    """Tell whether the scores before a member's link function are its decisions."""
    core = _deciding(member)
    if isinstance(core, OneVsRestClassifier):
        return all(_decides_by_scores(inner) for inner in core.estimators_)
    return not (
        isinstance(core, AdaBoostClassifier | BaggingClassifier | OneVsOneClassifier)
        or (isinstance(core, SVC | NuSVC) and hasattr(core, "predict_proba"))
    )


def _of_pairs(end: GraphEnd, svc: Any, output: str) -> str:
    """Return the decisions of support vectors from the scores of pairs, before their calibration."""
    for node in end.nodes_before(output):
        pairs = _calibrated_pairs(end, node)
        if pairs is None:
            continue
        known, n_classes = end.type(pairs), len(svc.classes_)
        if n_classes == 2:
            return end.opposite(pairs)
        if svc.decision_function_shape == "ovo" or known is None:
            return pairs
        decisions = votes_and_confidences(end.op, pairs, n_classes, known.elem_type)
        return end.op.set_type(decisions, known.elem_type, ((known.shape or (None,))[0], n_classes))
    return NO_DECISION


def _calibrated_pairs(end: GraphEnd, node: NodeProto) -> str | None:
    """Return s of ``sigmoid(a s + b)``."""
    if node.op_type != "Sigmoid":
        return None
    for op_type in ("Add", "Mul"):
        inner = end.producer(node.input[0])
        if inner is None or inner.op_type != op_type or end.constant(inner.input[1]) is None:
            return None
        node = inner
    return end.origin(node.input[0])


def _of_boosting(end: GraphEnd, output: str, n_classes: int) -> str:
    """Return the weighted votes of members; probabilities are the softmax of them over n_classes - 1."""
    found = raw_score(end, output)
    if found is None or found.link != "softmax":
        return NO_DECISION
    if n_classes == 2:
        return found.name
    decisions = end.op.Mul(found.name, end.scalar(n_classes - 1.0, found.name))
    end.copy_type(decisions, found.name)
    return decisions


def _half(end: GraphEnd, score: str) -> str:
    decisions = end.op.Mul(score, end.scalar(0.5, score))
    end.copy_type(decisions, score)
    return decisions


def _of_bagging(end: GraphEnd, bagging: Any, output: str, raw: RawScore) -> str:
    """Return the mean of the members' scores, where the graph averages their probabilities."""
    mean = end.producer(output)
    joined = None if mean is None or mean.op_type != "ReduceMean" else end.producer(mean.input[0])
    if joined is None or joined.op_type != "Concat" or not all(map(_decides_by_scores, bagging.estimators_)):
        return NO_DECISION
    scores = []
    for name in joined.input:
        reshaped = end.producer(name)
        found = None if reshaped is None else raw_score(end, reshaped.input[0])
        if found is None:
            return NO_DECISION
        single = single_score(end, found.name) if found.link == "sigmoid" else None
        scores.append(single or found.name)
    widths = {end.width(score) for score in scores}
    if widths != {1 if len(bagging.classes_) == 2 else len(bagging.classes_)}:
        return NO_DECISION
    decisions = end.op.Div(reduce(end.op.Add, scores), end.scalar(len(scores), scores[0]))
    end.copy_type(decisions, scores[0])
    return decisions
