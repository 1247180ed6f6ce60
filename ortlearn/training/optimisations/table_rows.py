"""Rows of weight tables that samples look up: only these have a gradient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from ...data.samples import Data
from ...graphs import TensorType, make_value_info
from ...graphs.editing import with_fields
from ...graphs.view import GraphView
from ...penalties.l2 import L2Penalty
from ...penalties.none import NoPenalty
from ..graphs.task import TrainingTask

__all__ = ["TableRows", "looked_up_tables"]

Weights = Mapping[str, np.ndarray]

#: Maximum share of the rows of a table that samples look up for which the others are left out.
MAX_SHARE = 0.75


@dataclass(frozen=True)
class TableRows:
    """Tables of a task, such as the values of leaves, reduced to the rows that some samples look up."""

    rows: dict[str, np.ndarray]  # indices of these rows, increasing, by weight
    features: dict[str, str]  # feature with the row indices of each sample, by weight

    @classmethod
    def of(cls, task: TrainingTask, data: Data, weights: Weights, pulled: bool = False) -> TableRows:
        """Return the rows of the tables that only one look-up of a feature reads.

        Tables with a penalty, which changes the other rows, are whole, unless weights are ``pulled`` to
        values that these samples say nothing about.
        """
        rows, features, inputs = {}, {}, task.inputs(data)
        penalties = (NoPenalty, L2Penalty) if pulled else NoPenalty
        for table, feature in looked_up_tables(task, data).items():
            if all(isinstance(part, penalties) for part in task.penalties_of(table)):
                numbers, n_rows = inputs[feature], len(weights[table])
                found = np.unique(numbers % n_rows)  # indices may be negative
                # With an index out of bounds, the table stays whole, and onnxruntime raises an error.
                in_bounds = bool(((numbers >= -n_rows) & (numbers < n_rows)).all())
                if in_bounds and 0 < len(found) <= MAX_SHARE * n_rows:
                    rows[table], features[table] = found, feature
        return cls(rows, features)

    def task(self, task: TrainingTask) -> TrainingTask:
        """Return the task with tables of any number of rows."""
        inputs = []
        for value in task.graph.model.graph.input:
            if value.name in self.rows:
                known = value.type.tensor_type
                sizes = tuple(dim.dim_value for dim in known.shape.dim)[1:]
                value = make_value_info(value.name, TensorType(known.elem_type, (None, *sizes)))
            inputs.append(value)
        return task.changed(model=with_fields(task.graph.model, input=inputs)) if self.rows else task

    def data(self, task: TrainingTask, data: Data, weights: Weights) -> Data:
        """Return the samples with row indices into the reduced tables."""
        if not self.rows:
            return data
        features = task.inputs(data)
        for table, feature in self.features.items():
            numbers = features[feature] % len(weights[table])
            found = np.searchsorted(self.rows[table], numbers)
            features[feature] = found.astype(features[feature].dtype)
        return Data(data.X, data.y, data.sample_weight, features, data.members)

    def of_weights(self, weights: Weights) -> dict[str, np.ndarray]:
        """Return the reduced tables, and the other weights."""
        return {
            name: array[self.rows[name]] if name in self.rows else array for name, array in weights.items()
        }

    def whole(self, reduced: Weights, weights: Weights) -> dict[str, np.ndarray]:
        """Return complete tables; their other rows are taken from given weights."""
        found = dict(reduced)
        for name, rows in self.rows.items():
            found[name] = np.array(weights[name], dtype=reduced[name].dtype)
            found[name][rows] = reduced[name]
        return found


def looked_up_tables(task: TrainingTask, data: Data) -> dict[str, str]:
    """Return the weights whose rows a single node reads, with the feature of the row indices.

    The node may read :attr:`~ortlearn.training.graphs.task.ScoreGraph.tables`, computed from the weights.
    """
    view, inputs = GraphView(task.graph.model), task.inputs(data)
    found: dict[str, str] = {}
    for node in view.nodes:
        axis = next((item.i for item in node.attribute if item.name == "axis"), 0)
        if (node.domain, node.op_type) != ("", "Gather") or axis:
            continue
        rows, feature = node.input
        table = task.graph.tables.get(rows, rows)
        is_single = all(len(view.readers[name]) == 1 and not view.keeps_name(name) for name in node.input)
        is_dense = feature in inputs and not issparse(inputs[feature])
        if table in task.graph.intercepts and is_single and is_dense:
            found[table] = feature
    return found
