"""Isotonic regression: lines between thresholds that rise, or fall."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from ..losses import SquaredErrorLoss
from .base import ModelDefinition
from .constraints.base import Constraint
from .constraints.sets import Increasing, Rising
from .forms import Form
from .scores import Scores, regression
from .writer import ModelWriter


@dataclass(frozen=True)
class _Directed(Form):
    """Values that rise, of those that rise or fall: times a sign, and in reverse where ``step`` is -1."""

    sign: int
    step: int

    @property
    def text(self) -> str:  # type: ignore[override]
        return ("-" if self.sign < 0 else "") + "{}" + ("" if self.step > 0 else "[::-1]")

    def forward(self, value: np.ndarray) -> np.ndarray:
        return self.sign * value[:: self.step]

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return self.forward(value).reshape(like.shape)


def _constraint(low: float | None, high: float | None) -> tuple[Constraint, int]:
    """Return the set of values between two bounds, and the sign that makes an upper one alone a lower one."""
    if low is not None and high is not None and low < high:
        return Increasing(float(low), float(high)), 1
    if low is None and high is not None:
        return Rising(-float(high)), -1
    return Rising(None if low is None else float(low)), 1


def interpolated(op: ModelWriter, model: Any, column: str, low: float | None, high: float | None) -> str:
    """Append the lines between the thresholds of an IsotonicRegression, (n, 1), within bounds if any."""
    places = np.asarray(model.X_thresholds_, dtype=op.float_dtype)
    constraint, sign = _constraint(low, high)
    form = _Directed(sign, sign if model.increasing_ else -sign)
    values = op.parameter(model, "y_thresholds_", form=form, role="table", constraint=constraint)
    if len(places) == 1:
        value = op.for_each_sample(column, values)
        return value if sign > 0 else op.Neg(value)
    x = op.Max(op.Min(column, places[-1:]), places[:1])
    above = op.ones_where(op.GreaterOrEqual(x, places[None, 1:-1]))
    number = op.Cast(op.ReduceSum(above, [1], keepdims=0), to=TensorProto.INT64)
    lengths = np.diff(places)
    lengths[lengths == 0] = 1  # thresholds that are the same in float32
    begin, length = (op.Gather(op.constant(own), number, axis=0) for own in (places[:-1], lengths))
    share = op.Div(op.Sub(op.Reshape(x, [-1]), begin), length)
    numbers = [number, op.Add(number, 1)]
    if form.step < 0:
        numbers = [op.Sub(len(places) - 1, own) for own in numbers]
    left, right = (op.Gather(values, own, axis=0) for own in numbers)
    value = op.Reshape(op.Add(left, op.Mul(op.Sub(right, left), share)), [-1, 1])
    value = value if sign > 0 else op.Neg(value)
    if model.out_of_bounds == "clip":
        return value
    outside = op.Or(op.Less(column, places[:1]), op.Greater(column, places[-1:]))
    return op.Add(value, op.Where(outside, np.nan, 0.0))


class IsotonicDefinition(ModelDefinition):
    """IsotonicRegression: the values at the thresholds stay in their order, and in their bounds.

    It minimises the squared error (Barlow, R. E. et al., "Statistical Inference under Order Restrictions",
    1972, section 1.2). Outside the thresholds the graph gives NaN where scikit-learn gives NaN or an error.
    """

    loss = SquaredErrorLoss

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return regression(op, interpolated(op, model, x, model.y_min, model.y_max))

    def finish(self, model: Any) -> None:
        model._build_f(model.X_thresholds_, model.y_thresholds_)
