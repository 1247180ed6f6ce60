"""Objectives with rounded kinks, for solvers that need a gradient everywhere."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, helper

from ...graphs import GraphBuilder, TensorType, make_value_info
from ...losses import BaseLoss
from ...penalties import BasePenalty
from ..graphs.objective import objective_graph
from ..graphs.task import TrainingTask

__all__ = ["WIDTH", "SmoothedLoss", "SmoothedPenalty", "smoothed_objective"]

#: Input of the graph: width of the rounded kinks.
WIDTH = "ortlearn_width"


class _RoundingBuilder:
    """A builder that writes ``|x|`` as ``sqrt(x ** 2 + width ** 2)``, and Relu and Sqrt accordingly."""

    def __init__(self, op: GraphBuilder):
        self._op = op

    def __getattr__(self, name: str) -> Any:
        return getattr(self._op, name)

    def Abs(self, values: str) -> str:
        squares = self._op.Mul(values, values)
        return self._op.Sqrt(self._op.Add(squares, self._op.Mul(WIDTH, WIDTH)))

    def Relu(self, values: str) -> str:
        return self._op.Mul(self._op.Add(values, self.Abs(values)), 0.5)

    def Sqrt(self, values: str) -> str:
        return self._op.Sqrt(self._op.Add(values, self._op.Mul(WIDTH, WIDTH)))


def _rounding(op: GraphBuilder) -> Any:
    """Return a builder that writes rounded kinks; it has the methods of ``op``."""
    return _RoundingBuilder(op)


class SmoothedLoss(BaseLoss):
    """A loss with rounded kinks, which exceeds a loss of slope s by at most s times the width."""

    def __init__(self, loss: BaseLoss) -> None:
        self.loss = loss

    @property
    def by_position(self) -> bool:  # type: ignore[override]
        """Whether there is a loss for each position."""
        return self.loss.by_position

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample, depending on the width."""
        return self.loss.forward(_rounding(op), expected, predicted)


class SmoothedPenalty(BasePenalty):
    """A penalty with rounded kinks (Abs, Relu or Sqrt), as in :class:`SmoothedLoss`."""

    def __init__(self, penalty: BasePenalty) -> None:
        super().__init__()
        self.penalty = penalty

    def parts(self) -> list[BasePenalty]:
        """Return the rounded parts of the penalty."""
        return [SmoothedPenalty(part) for part in self.penalty.parts()]

    def parts_for(self, is_intercept: bool, name: str) -> list[BasePenalty]:
        """Return the rounded penalties of a weight."""
        return [SmoothedPenalty(part) for part in self.penalty.parts_for(is_intercept, name)]

    def forward(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the penalty of one weight, depending on the width."""
        return self.penalty.forward(_rounding(op), weight)


def smoothed_objective(task: TrainingTask) -> ModelProto:
    """Return the graph of the objective of a batch with rounded kinks; its last input is the width.

    As in Nesterov, Y., "Smooth minimization of non-smooth functions", Mathematical Programming 103 (2005),
    127-152.
    """
    loss, penalty = task.objective.loss, SmoothedPenalty(task.objective.penalty)
    model = objective_graph(task.changed(loss=loss and SmoothedLoss(loss), penalty=penalty))
    elem_type = helper.np_dtype_to_tensor_dtype(task.graph.dtype)
    model.graph.input.append(make_value_info(WIDTH, TensorType(elem_type, ())))
    return model
