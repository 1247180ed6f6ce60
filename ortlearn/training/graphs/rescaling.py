"""Updates of weights in units of the labels, for labels that are not scaled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
from onnx import NodeProto

from ...graphs import GraphBuilder
from ...graphs.view import GraphView
from .task import TrainingTask
from .wrapped_rate import WrappedRate

__all__ = ["Rescaled", "last_layer", "last_weights", "unit_lengths"]

#: State of a weight: the unit of each element.
UNIT = "unit_length"


class Rescaled(WrappedRate):
    """A learning rate that updates ``w / unit``, whose units are states (see :func:`unit_lengths`)."""

    def init(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return the initial state of one weight: that of the update, and units."""
        return {**self.learning_rate.init(weight), UNIT: np.ones_like(weight)}

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight in its units."""
        unit = state[UNIT]
        own = {name: value for name, value in state.items() if name != UNIT}
        scaled, slope = op.Div(weight, unit), op.Mul(gradient, unit)
        new, after = self.learning_rate.update(op, scaled, slope, own, rate)
        return op.Mul(new, unit), {**after, UNIT: op.Identity(unit)}

    def graph_key(self) -> Hashable:
        """Return a key of the nodes."""
        return type(self), self.learning_rate.graph_key()


def unit_lengths(
    task: TrainingTask, weights: Mapping[str, np.ndarray], spread: float
) -> dict[tuple[str, str], np.ndarray]:
    """Return the units of weights: the scale of the labels in the last layer, one elsewhere."""
    last = last_weights(task)
    return {
        (name, UNIT): np.full_like(array, spread if name in last else 1.0) for name, array in weights.items()
    }


def last_weights(task: TrainingTask) -> list[str]:
    """Return the trained weights of the last layer: of the product and the addition that give the scores."""
    return last_layer(task)[1]


def last_layer(task: TrainingTask) -> tuple[NodeProto | None, list[str]]:
    """Return the product that gives the scores, or what is in its place, and the weights of the layer."""
    view, found = GraphView(task.graph.model), []
    node = view.producer(task.graph.output, passing=("Identity", "Reshape"))
    while node is not None and node.op_type in ("Add", "MatMul", "Gemm"):
        trained = [name for name in node.input if name in task.graph.intercepts]
        found += trained
        others = [name for name in node.input if name not in trained]
        if node.op_type != "Add" or len(others) != 1:
            break
        node = view.producer(others[0], passing=("Identity", "Reshape"))
    return node, found
