"""Calibrated classifiers: sigmoid, isotonic and temperature."""

from collections.abc import Iterator, Sequence
from typing import Any

from ..losses import LogLoss
from .base import ModelDefinition, Objective, Route
from .constraints.signs import Positive
from .ensembles import decision_of, given, mean
from .isotonic import interpolated
from .scores import Scores, binary_classes, class_scores, classes_of_probabilities
from .writer import ModelWriter


class CalibratedClassifierDefinition(ModelDefinition):
    """CalibratedClassifierCV: the mean of classifiers whose scores are calibrated."""

    takes_columns = True

    def covers(self, model: Any) -> bool:
        count = len(model.classes_)
        return all(len(part.estimator.classes_) == count for part in model.calibrated_classifiers_)

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        for part in model.calibrated_classifiers_:
            yield Route(part.estimator, columns, is_member=True)

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        # sigmoids and temperatures minimise it
        return None if model.method == "isotonic" else Objective(LogLoss())

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        parts, classes = model.calibrated_classifiers_, model.classes_
        found = [_calibrated(op, part, x, f"calibrated_classifiers_[{i}]") for i, part in enumerate(parts)]
        score, binary = found[0][0], len(classes) == 2
        # trained are logits, where one classifier alone has some
        if len(found) == 1 and score is not None and (binary or parts[0].method != "sigmoid"):
            return (binary_classes if binary else class_scores)(op, score, classes, decision="")
        return classes_of_probabilities(op, mean(op, [shares for _, shares in found]), classes, decision="")


def _calibrated(op: ModelWriter, part: Any, x: str, path: str) -> tuple[str | None, str]:
    """Append a calibrated classifier; return its logits, where it has some, and its probabilities."""
    scores = op.write(part.estimator, x, f"{path}.estimator")
    if part.method == "temperature":
        return _tempered(op, part, scores, path)
    given, binary = _response(op, part, scores), len(part.classes) == 2
    columns, logits = [], []
    for i, calibrator in enumerate(part.calibrators):
        with op.inside(f"{path}.calibrators[{i}]"):
            column = given if binary else op.Gather(given, [i], axis=1)
            logit, share = CALIBRATORS[part.method](op, calibrator, column)
        logits.append(logit)
        columns.append(share)
    score = None if None in logits else op.joined([name for name in logits if name is not None])
    if binary:
        return score, op.of_two_classes(columns[0])
    shares = op.joined(columns)
    total = op.ReduceSum(shares, [1], keepdims=1)
    none = op.Equal(total, 0.0)  # every class has the same share then
    return score, op.Where(none, 1.0 / len(columns), op.Div(shares, op.Where(none, 1.0, total)))


def _response(op: ModelWriter, part: Any, scores: Scores) -> str:
    """Return what is calibrated: decisions where the classifier has them, or else probabilities."""
    by_decision = hasattr(part.estimator, "decision_function")
    if by_decision and decision_of(scores) is None:
        raise op.fail(part.estimator, "the graph does not have its decision_function.")
    return given(op, scores, "decision_function" if by_decision else "predict_proba")


def _sigmoid(op: ModelWriter, calibrator: Any, column: str) -> tuple[str | None, str]:
    """Append ``1 / (1 + exp(a f + b))`` (Platt, 1999)."""
    slope = op.parameter(calibrator, "a_", role="scale", constraint=Positive(-1))
    shift = op.parameter(calibrator, "b_", role="intercept")
    logit = op.Neg(op.Add(op.Mul(column, slope), shift))
    return logit, op.Sigmoid(logit)


def _isotonic(op: ModelWriter, calibrator: Any, column: str) -> tuple[str | None, str]:
    """Append the line through the thresholds around a score."""
    return None, interpolated(op, calibrator, column, 0.0, 1.0)  # probabilities


def _tempered(op: ModelWriter, part: Any, scores: Scores, path: str) -> tuple[str, str]:
    """Append the softmax of logits times an inverse temperature (Guo et al., ICML 2017)."""
    with op.inside(f"{path}.calibrators[0]"):
        beta = op.parameter(part.calibrators[0], "beta_", role="scale", constraint=Positive())
    binary, by_decision = len(part.classes) == 2, hasattr(part.estimator, "decision_function")
    if by_decision and binary:  # the logits of the classes are -f and f
        logit = op.Mul(op.Mul(_response(op, part, scores), beta), 2.0)
        return logit, op.of_two_classes(op.Sigmoid(logit))
    given = _response(op, part, scores) if by_decision else op.Log(op.Add(str(scores.probabilities), 1e-12))
    logits = op.Mul(given, beta)
    shares = op.Softmax(logits, axis=1)
    return op.difference(logits) if binary else logits, shares


CALIBRATORS = {"sigmoid": _sigmoid, "isotonic": _isotonic}
