"""Calibrated classifiers: sigmoid, isotonic and temperature."""

from collections.abc import Iterator, Sequence
from typing import Any

from ..losses import LogLoss
from .base import ModelDefinition, Objective, Route
from .constraints.signs import Positive
from .ensembles import mean, response
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
    found, binary = response(op, part.estimator, scores), len(part.classes) == 2
    columns, logits = [], []
    for i, calibrator in enumerate(part.calibrators):
        with op.inside(f"{path}.calibrators[{i}]"):
            column = found if binary else op.Gather(found, [i], axis=1)
            if part.method == "isotonic":
                columns.append(interpolated(op, calibrator, column, 0.0, 1.0))
            else:
                logits.append(_logit(op, calibrator, column))
                columns.append(op.Sigmoid(logits[-1]))
    score = op.joined(logits) if logits else None
    shares = op.joined(columns)
    return score, op.of_two_classes(shares) if binary else op.over_sum(shares, 1.0 / len(columns))


def _logit(op: ModelWriter, calibrator: Any, column: str) -> str:
    """Append ``-(a f + b)`` (Platt, 1999)."""
    slope = op.parameter(calibrator, "a_", role="scale", constraint=Positive(-1))
    return op.Neg(op.Add(op.Mul(column, slope), op.parameter(calibrator, "b_", role="intercept")))


def _tempered(op: ModelWriter, part: Any, scores: Scores, path: str) -> tuple[str, str]:
    """Append the softmax of logits times an inverse temperature (Guo et al., ICML 2017)."""
    with op.inside(f"{path}.calibrators[0]"):
        beta = op.parameter(part.calibrators[0], "beta_", role="scale", constraint=Positive())
    binary, by_decision = len(part.classes) == 2, hasattr(part.estimator, "decision_function")
    if by_decision and binary:  # the logits of the classes are -f and f
        logit = op.Mul(op.Mul(response(op, part.estimator, scores), beta), 2.0)
        return logit, op.of_two_classes(op.Sigmoid(logit))
    if by_decision:
        logits = op.Mul(response(op, part.estimator, scores), beta)
    else:
        logits = op.Mul(op.Log(op.Add(str(scores.probabilities), 1e-12)), beta)
    shares = op.Softmax(logits, axis=1)
    return op.difference(logits) if binary else logits, shares
