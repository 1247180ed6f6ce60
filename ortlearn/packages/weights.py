"""Class weights and averaged weights in the graphs of a training package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, TensorProto

from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    make_value_info,
    map_names,
    opset_versions,
)
from ..graphs.editing import with_fields
from ..runtime.buffers import Carried
from ..training.graphs.averaging import COUNT, SUM
from ..training.graphs.names import SAMPLE_WEIGHT
from ..training.graphs.objective import elem_type
from ..training.graphs.task import TrainingTask

__all__ = ["GIVEN_WEIGHT", "with_averages", "with_class_weights"]

#: Input of the sample weights in graphs that multiply them by class weights.
GIVEN_WEIGHT = "ortlearn_given_weight"
AVERAGE_OF = "ortlearn_average_of_{}"


def with_class_weights(
    model: ModelProto, task: TrainingTask, table: Sequence[float], weighted: bool
) -> ModelProto:
    """Return a training graph that multiplies sample weights by the class weights of the labels."""
    op = GraphBuilder(
        opset_versions(model)[""],
        dtype=task.graph.dtype,
        existing_names=graph_names(model.graph),
        prefix="class_weights_",
    )
    weights, shape = np.asarray(table, dtype=task.graph.dtype), task.objective.label_type.shape or ()
    if len(shape) == 2 and shape[1] != 1:  # one-hot
        label = op.Cast(task.objective.label, to=elem_type(task))
        found = op.Reshape(op.MatMul(label, weights.reshape(-1, 1)), np.array([-1]))
    else:
        number = op.Cast(op.Reshape(task.objective.label, np.array([-1])), to=TensorProto.INT64)
        found = op.Gather(weights, number, axis=0)
    inputs = []
    if weighted:
        inputs = [make_value_info(GIVEN_WEIGHT, TensorType(elem_type(task), ("rows",)))]
        found = op.Mul(found, GIVEN_WEIGHT)
    op.node("Identity", found, outputs=[SAMPLE_WEIGHT])
    kept = [value for value in model.graph.input if value.name != SAMPLE_WEIGHT]
    return append_nodes(with_fields(model, input=kept), op, inputs=inputs, first=True)


def with_averages(model: ModelProto, task: TrainingTask, carried: Mapping[str, Carried]) -> ModelProto:
    """Return a graph that uses the averages of the weights, once averaging has begun."""
    states = {(item.weight, item.state): name for name, item in carried.items()}
    known = {value.name: value for value in model.graph.input}
    weights = [name for name in task.graph.weights if name in known]
    op = GraphBuilder(
        opset_versions(model)[""],
        dtype=task.graph.dtype,
        existing_names=graph_names(model.graph),
        prefix="average_",
    )
    inputs = []
    for name in weights:
        shape = tuple(dim.dim_value for dim in known[name].type.tensor_type.shape.dim)
        total, count = states[name, SUM], states[name, COUNT]
        inputs += [
            make_value_info(name, TensorType(known[name].type.tensor_type.elem_type, shape)),
            make_value_info(total, TensorType(TensorProto.DOUBLE, shape)),
            make_value_info(count, TensorType(TensorProto.DOUBLE, ())),
        ]
        begun = op.GreaterOrEqual(count, np.array(1.0))
        mean = op.Cast(op.Div(total, op.Max(count, np.array(1.0))), to=elem_type(task))
        op.node("Where", begun, mean, name, outputs=[AVERAGE_OF.format(name)])
    renamed = map_names(model, {name: AVERAGE_OF.format(name) for name in weights})
    averages = {AVERAGE_OF.format(name) for name in weights}
    kept = [value for value in renamed.graph.input if value.name not in averages]
    return append_nodes(with_fields(renamed, input=kept), op, inputs=inputs, first=True)
