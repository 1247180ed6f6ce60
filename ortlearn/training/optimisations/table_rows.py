"""Rows of weight tables that samples look up: only these have a gradient."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto
from scipy.sparse import issparse

from ...data.samples import Data
from ...graphs import TensorType, make_value_info
from ...graphs.editing import with_fields
from ...graphs.view import GraphView
from ...penalties.none import NoPenalty
from ..graphs.task import TrainingTask

__all__ = ["TableRows", "looked_up_tables"]

#: Operators of constraints by row, whose sums are over the last axis.
BY_ROW = {
    "Abs",
    "Add",
    "And",
    "Cast",
    "Div",
    "Greater",
    "Less",
    "Max",
    "Mul",
    "Neg",
    "ReduceSum",
    "Relu",
    "Sub",
    "Where",
}

#: Maximum share of the rows of a table that samples look up for which the others are left out.
MAX_SHARE = 0.75


@dataclass(frozen=True)
class TableRows:
    """Tables of a task, such as the values of leaves, reduced to the rows that some samples look up."""

    rows: dict[str, np.ndarray]  # indices of these rows, increasing, by weight
    features: dict[str, str]  # feature with the row indices of each sample, by weight

    @classmethod
    def of(cls, task: TrainingTask, data: Data, weights: Mapping[str, np.ndarray]) -> TableRows:
        """Return the rows of the tables without a penalty that only one look-up of a feature reads."""
        rows, features, inputs = {}, {}, task.inputs(data)
        for table, feature in looked_up_tables(task, data).items():
            if all(isinstance(part, NoPenalty) for part in task.penalties_of(table)):
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

    def data(self, task: TrainingTask, data: Data, weights: Mapping[str, np.ndarray]) -> Data:
        """Return the samples with row indices into the reduced tables."""
        if not self.rows:
            return data
        features = task.inputs(data)
        for table, feature in self.features.items():
            numbers = features[feature] % len(weights[table])
            found = np.searchsorted(self.rows[table], numbers)
            features[feature] = found.astype(features[feature].dtype)
        return Data(data.X, data.y, data.sample_weight, features, data.members)

    def of_weights(self, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the reduced tables, and the other weights."""
        return {
            name: array[self.rows[name]] if name in self.rows else array for name, array in weights.items()
        }

    def whole(
        self, reduced: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return complete tables; their other rows are taken from given weights."""
        found = dict(reduced)
        for name, rows in self.rows.items():
            found[name] = np.array(weights[name], dtype=reduced[name].dtype)
            found[name][rows] = reduced[name]
        return found


def looked_up_tables(task: TrainingTask, data: Data) -> dict[str, str]:
    """Return the weights whose rows a single node reads, with the feature of the row indices.

    The rows may be computed before, each from that of the weight, such as those of a simplex.
    """
    view, inputs = GraphView(task.graph.model), task.inputs(data)
    found: dict[str, str] = {}
    for node in view.nodes:
        axis = next((item.i for item in node.attribute if item.name == "axis"), 0)
        if (node.domain, node.op_type) != ("", "Gather") or axis:
            continue
        feature, table = node.input[1], _weight_of(view, node, task.graph.intercepts)
        is_read_once = len(view.readers[feature]) == 1 and not view.keeps_name(feature)
        if table is not None and is_read_once and feature in inputs and not issparse(inputs[feature]):
            found[table] = feature
    return found


def _weight_of(view: GraphView, look_up: NodeProto, weights: Collection[str]) -> str | None:
    """Return the weight whose rows alone determine those that a node reads, if nothing else reads it."""
    names, constants, nodes, left = set(), [], [look_up], [look_up.input[0]]
    while left:
        name = left.pop()
        node, value = view.producers.get(name), view.value(name)
        if name in weights:
            names.add(name)
        elif value is not None:
            constants.append(value)
        elif node is None or node.op_type not in BY_ROW:
            return None
        elif node not in nodes:
            nodes.append(node)
            is_sum = node.op_type == "ReduceSum"
            left.extend(node.input[:1] if is_sum else node.input)
            if is_sum and not (len(node.input) > 1 and view.is_constant(node.input[1], -1)):
                return None
    if len(names) != 1:
        return None
    rank = len(view.op.shape(table := names.pop()) or ())
    read = [table, *(name for node in nodes[1:] for name in node.output)]
    is_read = any(own not in nodes for name in read for own in view.readers[name])
    is_wide = any(value.ndim >= rank for value in constants if value.size > 1)
    return None if is_read or is_wide or any(map(view.keeps_name, read)) else table
