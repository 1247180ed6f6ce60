"""Isotonic regression, and calibrated classifiers: sigmoid, isotonic and temperature."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto
from sklearn.frozen import FrozenEstimator

from ...losses import LogLoss, SquaredErrorLoss
from ..base import ModelDefinition, Objective, Route
from ..capabilities import CrossFitted
from ..constraints.base import Constraint
from ..constraints.sets import Increasing, Rising
from ..constraints.signs import Positive
from ..forms import Form
from ..scores import Scores, binary_classes, class_scores, classes_of_probabilities, regression
from ..writer import ModelWriter
from .ensembles import ONE_BY_ONE, mean, response


@dataclass(frozen=True)
class Monotonic(Form):
    """Increasing form of monotonic values: multiplied by a sign, and reversed if ``step`` is -1."""

    sign: int
    step: int

    @property
    def text(self) -> str:  # type: ignore[override]
        return ("-" if self.sign < 0 else "") + "{}" + ("" if self.step > 0 else "[::-1]")

    def forward(self, value: np.ndarray) -> np.ndarray:
        return self.sign * value[:: self.step]

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return self.forward(value).reshape(like.shape)


def _bounds_constraint(low: float | None, high: float | None) -> tuple[Constraint, int]:
    """Return the constraint for two bounds, and the sign of the values that it applies to."""
    if low is not None and high is not None and low < high:
        return Increasing(float(low), float(high)), 1
    if low is None and high is not None:
        return Rising(-float(high)), -1
    return Rising(None if low is None else float(low)), 1


def interpolated(op: ModelWriter, model: Any, column: str, low: float | None, high: float | None) -> str:
    """Append the linear interpolation of an IsotonicRegression, of shape (n, 1), with optional bounds."""
    thresholds = np.asarray(model.X_thresholds_, dtype=op.float_dtype)
    constraint, sign = _bounds_constraint(low, high)
    form = Monotonic(sign, sign if model.increasing_ else -sign)
    values = op.parameter(model, "y_thresholds_", form=form, role="table", constraint=constraint)
    values = values if sign > 0 else op.Neg(values)
    if len(thresholds) == 1:
        return op.repeated_row(column, values)
    x = op.Max(op.Min(column, thresholds[-1:]), thresholds[:1])
    above = op.ones_where(op.GreaterOrEqual(x, thresholds[None, 1:-1]))
    index = op.Cast(op.ReduceSum(above, [1], keepdims=0), to=TensorProto.INT64)
    lengths = np.diff(thresholds)
    lengths[lengths == 0] = 1  # equal thresholds in float32
    begin, length = (op.Gather(op.constant(table), index, axis=0) for table in (thresholds[:-1], lengths))
    share = op.Div(op.Sub(op.Reshape(x, [-1]), begin), length)
    indices = [index, op.Add(index, 1)]
    if form.step < 0:
        indices = [op.Sub(len(thresholds) - 1, index) for index in indices]
    left, right = (op.Gather(values, index, axis=0) for index in indices)
    value = op.Reshape(op.Add(left, op.Mul(op.Sub(right, left), share)), [-1, 1])
    if model.out_of_bounds == "clip":
        return value
    outside = op.Or(op.Less(column, thresholds[:1]), op.Greater(column, thresholds[-1:]))
    return op.Add(value, op.Where(outside, np.nan, 0.0))


class IsotonicDefinition(ModelDefinition):
    """IsotonicRegression: monotonic values; outputs NaN where scikit-learn returns NaN or fails."""

    # Barlow, R. E. et al., "Statistical Inference under Order Restrictions", 1972, section 1.2
    loss = SquaredErrorLoss

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return regression(op, interpolated(op, model, x, model.y_min, model.y_max))

    def finish(self, model: Any) -> None:
        model._build_f(model.X_thresholds_, model.y_thresholds_)


class CalibratedClassifierDefinition(ModelDefinition):
    """CalibratedClassifierCV: the mean of calibrated classifiers."""

    capabilities = (CrossFitted(lambda model: not isinstance(model.estimator, FrozenEstimator)),)
    takes_columns = True

    def covers(self, model: Any) -> bool:
        count = len(model.classes_)
        return all(len(part.estimator.classes_) == count for part in model.calibrated_classifiers_)

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        for part in model.calibrated_classifiers_:
            yield Route(part.estimator, columns, is_member=True)

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        # sigmoid and temperature scaling minimise the log loss, after the fit of the classifier
        return None if model.method == "isotonic" else Objective(LogLoss(), differs=ONE_BY_ONE)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        parts, binary = model.calibrated_classifiers_, len(model.classes_) == 2
        if model.method == "sigmoid":
            score, shares = _sigmoids(op, parts, x)
        else:
            calibrated: Any = _isotonic if model.method == "isotonic" else _temperature_scaled
            found = [calibrated(op, part, x, f"calibrated_classifiers_[{i}]") for i, part in enumerate(parts)]
            score, shares = found[0][0], mean(op, [shares for _, shares in found])
        # a single classifier is trained on its logits, if available
        if len(parts) == 1 and score is not None and (binary or model.method != "sigmoid"):
            return (binary_classes if binary else class_scores)(op, score, model.classes_, decision="")
        return classes_of_probabilities(op, shares, model.classes_, decision="")


def _isotonic(op: ModelWriter, part: Any, x: str, path: str) -> tuple[None, str]:
    """Append a classifier calibrated by isotonic regression; return no logits, and its probabilities."""
    found = response(op, part.estimator, op.write(part.estimator, x, f"{path}.estimator"))
    columns, count = list[str](), len(part.calibrators)
    for i, calibrator in enumerate(part.calibrators):
        with op.inside(f"{path}.calibrators[{i}]"):
            column = found if count == 1 else op.Gather(found, [i], axis=1)
            columns.append(interpolated(op, calibrator, column, 0.0, 1.0))
    shares = op.joined(columns)
    return None, op.binary_probabilities(shares) if count == 1 else op.normalized(shares, 1.0 / count)


def _sigmoids(op: ModelWriter, parts: Sequence[Any], x: str) -> tuple[str, str]:
    """Append classifiers; return their logits ``-(a f + b)`` (Platt, 1999) and their mean probabilities.

    The columns of all classifiers are in one matrix.
    """
    columns, slopes, intercepts, count = [], [], [], len(parts[0].calibrators)
    for path, part in ((f"calibrated_classifiers_[{i}]", part) for i, part in enumerate(parts)):
        columns.append(response(op, part.estimator, op.write(part.estimator, x, f"{path}.estimator")))
        for i, calibrator in enumerate(part.calibrators):
            with op.inside(f"{path}.calibrators[{i}]"):
                slopes.append(op.parameter(calibrator, "a_", role="scale", constraint=Positive(-1)))
                intercepts.append(op.parameter(calibrator, "b_", role="intercept"))
    a, b = (op.Concat(*(op.Reshape(own, [1]) for own in row), axis=0) for row in (slopes, intercepts))
    logits = op.Neg(op.Add(op.Mul(op.joined(columns), a), b))
    shares = op.Reshape(op.Sigmoid(logits), [-1, len(parts), count])
    if count == 1:
        return logits, op.binary_probabilities(op.ReduceMean(shares, [1], keepdims=0))
    return logits, op.ReduceMean(op.normalized(shares, 1.0 / count, axis=2), [1], keepdims=0)


def _temperature_scaled(op: ModelWriter, part: Any, x: str, path: str) -> tuple[str, str]:
    """Append a classifier with a temperature (Guo et al., ICML 2017); return logits and probabilities."""
    scores = op.write(part.estimator, x, f"{path}.estimator")
    with op.inside(f"{path}.calibrators[0]"):
        beta = op.parameter(part.calibrators[0], "beta_", role="scale", constraint=Positive())
    binary, by_decision = len(part.classes) == 2, hasattr(part.estimator, "decision_function")
    if by_decision and binary:  # the logits of the classes are -f and f
        logits = op.Mul(op.Mul(response(op, part.estimator, scores), beta), 2.0)
        return logits, op.binary_probabilities(op.Sigmoid(logits))
    if by_decision:
        logits = op.Mul(response(op, part.estimator, scores), beta)
    else:
        logits = op.Mul(op.Log(op.Add(str(scores.probabilities), 1e-12)), beta)
    return op.difference(logits) if binary else logits, op.Softmax(logits, axis=1)
