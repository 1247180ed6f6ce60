"""Labels of interval models: programs give y, which the graphs standardise and repeat for each quantile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto

from ..graphs import GraphBuilder, TensorType, append_nodes, graph_names, make_value_info, opset_versions
from ..graphs.editing import with_fields
from ..training.graphs.objective import elem_type
from ..training.graphs.task import TrainingTask

__all__ = ["GIVEN_LABEL", "LabelUnits"]

#: Input of the labels in graphs that standardise them.
GIVEN_LABEL = "ortlearn_given_label"


@dataclass(frozen=True)
class LabelUnits:
    """Labels ``(y - centre) / spread``, repeated for each output."""

    centre: float
    spread: float
    n_outputs: int

    def standardised(self, y: Any) -> np.ndarray:
        """Return the labels of the model, of shape (n, n_outputs)."""
        column = (np.asarray(y, dtype=np.float64).reshape(-1, 1) - self.centre) / self.spread
        return np.tile(column, (1, self.n_outputs))

    def given(self, labels: np.ndarray) -> np.ndarray:
        """Return y of shape (n, 1), for labels of the model."""
        return (labels[:, :1] * self.spread + self.centre).astype(labels.dtype)

    def of_given(self, model: ModelProto, task: TrainingTask) -> ModelProto:
        """Return a graph that takes y."""
        op = GraphBuilder(
            opset_versions(model)[""],
            dtype=task.graph.dtype,
            existing_names=graph_names(model.graph),
            prefix="label_units_",
        )
        centre, spread = (np.asarray(value, dtype=task.graph.dtype) for value in (self.centre, self.spread))
        column = op.Div(op.Sub(GIVEN_LABEL, centre), spread)
        op.node("Concat", *[column] * self.n_outputs, axis=1, outputs=[task.objective.label])
        kept = [value for value in model.graph.input if value.name != task.objective.label]
        label = make_value_info(GIVEN_LABEL, TensorType(elem_type(task), ("rows", 1)))
        return append_nodes(with_fields(model, input=kept), op, inputs=[label], first=True)
