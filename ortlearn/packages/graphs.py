"""Graphs of a training package: step, epoch and evaluation, for any ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    extract_model,
    graph_names,
    make_inputs_of,
    make_value_info,
    opset_versions,
    value_types,
    with_loop_limits,
)
from ..runtime.buffers import Carried
from ..runtime.sessions import CONDITION
from ..training.graphs.names import SAMPLE_WEIGHT
from ..training.graphs.objective import elem_type, mean_loss, sample_loss_graph
from ..training.graphs.step_graphs import append_model, step_graph
from ..training.graphs.task import TrainingTask
from ..training.steps.epoch_graph import epoch_graph

__all__ = ["EVALUATED", "SCORE", "PackageGraphs", "evaluation_graph", "package_graphs"]

EVALUATED = "ortlearn_mean_loss"
SCORE = "ortlearn_score"
PREDICTED = "ortlearn_predicted_{}"


@dataclass(frozen=True)
class PackageGraphs:
    """Graphs of a batch of any size and of an epoch of full batches, with their weights and states.

    ``carried`` has the weights and states in both graphs, by the name of the input of the step.
    """

    step: ModelProto
    epoch: ModelProto
    carried: dict[str, tuple[Carried, Carried]]


def package_graphs(task: TrainingTask, batch_size: int) -> PackageGraphs:
    """Return the training graphs of a package."""
    step, epoch = step_graph(task), epoch_graph(task, batch_size, 0, layout=None)
    in_epoch = {(item.weight, item.state): item for item in epoch.carried}
    carried = {item.source: (item, in_epoch[item.weight, item.state]) for item in step.carried}
    return PackageGraphs(step.model, with_loop_limits(epoch.model, CONDITION), carried)


def evaluation_graph(
    task: TrainingTask, model: ModelProto, predicted: str | None, classes: np.ndarray | None
) -> ModelProto:
    """Return the graph of the mean loss of samples, without penalty, and of their score."""
    graph, losses = sample_loss_graph(task)
    weighted = SAMPLE_WEIGHT if task.objective.weighted else None
    scalar = TensorType(elem_type(task), ())
    outputs = [make_value_info(EVALUATED, scalar)]
    op = GraphBuilder(
        opset_versions(graph)[""],
        dtype=task.graph.dtype,
        existing_names=graph_names(graph.graph),
        types=value_types(graph),
        prefix="evaluation_",
    )
    op.node("Identity", mean_loss(op, losses, weighted), outputs=[EVALUATED])
    if predicted is not None:
        name = _append_predictions(task, op, model, predicted)
        label = op.Cast(task.objective.label, to=elem_type(task))
        if classes is None:
            found = _r2_score(op, name, label, weighted)
        else:
            shape = task.objective.label_type.shape or ()
            found = _accuracy(op, name, label, classes, weighted, len(shape) == 2 and shape[1] != 1)
        op.node("Identity", found, outputs=[SCORE])
        outputs.append(make_value_info(SCORE, scalar))
    inputs = []
    if weighted is not None:
        inputs.append(make_value_info(SAMPLE_WEIGHT, TensorType(elem_type(task), ("batch",))))
    whole = append_nodes(graph, op, inputs=inputs, outputs=outputs)
    return extract_model(whole, [value.name for value in outputs])


def _append_predictions(task: TrainingTask, op: GraphBuilder, model: ModelProto, predicted: str) -> str:
    """Append the part of a model that computes predictions, and return their name."""
    part = make_inputs_of(extract_model(model, [predicted]), task.graph.weights)
    shared = {value.name for value in part.graph.input}
    own = graph_names(part.graph) - shared
    append_model(op, part, {name: PREDICTED.format(name) for name in own}, PREDICTED)
    return PREDICTED.format(predicted) if predicted in own else predicted


def _accuracy(
    op: GraphBuilder, predicted: str, label: str, classes: np.ndarray, weights: str | None, one_hot: bool
) -> str:
    """Append the accuracy; labels are class numbers or one-hot."""
    numbers = np.arange(len(classes))
    column = op.Reshape(predicted, np.array([-1, 1]))
    if classes.dtype.kind in "OUS":
        texts = [str(name) for name in classes]
        column = op.node(
            "LabelEncoder",
            column,
            domain="ai.onnx.ml",
            domain_version=2,
            keys_strings=texts,
            values_int64s=numbers.tolist(),
            default_int64=-1,
        )
        hits = op.Equal(column, numbers.reshape(1, -1))
    else:
        hits = op.Equal(op.Cast(column, to=TensorProto.INT64), classes.astype(np.int64).reshape(1, -1))
    if one_hot:
        expected = op.Greater(label, 0.5)
    else:
        flat = op.Cast(op.Reshape(label, np.array([-1, 1])), to=TensorProto.INT64)
        expected = op.Equal(flat, numbers.reshape(1, -1))
    correct = op.Cast(op.And(hits, expected), to=helper.np_dtype_to_tensor_dtype(op.float_dtype))
    return mean_loss(op, op.ReduceSum(correct, np.array([1]), keepdims=0), weights)


def _r2_score(op: GraphBuilder, predicted: str, label: str, weights: str | None) -> str:
    """Append R2 = 1 - sum (y - f)^2 / sum (y - mean y)^2, weighted."""
    label, predicted = op.Reshape(label, np.array([0, -1])), op.Reshape(predicted, np.array([0, -1]))

    def total(values: str) -> str:
        if weights is not None:
            values = op.Mul(values, op.Reshape(weights, np.array([-1, 1])))
        return op.ReduceSum(values, keepdims=0)

    ones = op.Add(op.Mul(label, 0.0), 1.0)
    mean = op.Div(total(label), total(ones))
    residual, deviation = op.Sub(label, predicted), op.Sub(label, mean)
    return op.Sub(1.0, op.Div(total(op.Mul(residual, residual)), total(op.Mul(deviation, deviation))))
