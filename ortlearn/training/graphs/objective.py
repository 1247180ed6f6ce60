"""Objective of a batch, mean loss plus penalty: its nodes and its graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper

from ... import plugins
from ...differentiation.stable_softplus import without_float64_softplus
from ...graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    copy_model,
    graph_names,
    make_value_info,
    opset_versions,
    value_types,
)
from ...graphs.queries import copy_value
from ...losses.written_losses import write_losses
from .names import BATCH, OBJECTIVE, OWN_NAMES, SAMPLE_WEIGHT, SMOOTH
from .plugin_results import check_penalty
from .sparse_products import with_sparse_products
from .task import TrainingTask

__all__ = [
    "add_terms",
    "differentiated",
    "mean_loss",
    "objective_graph",
    "penalty_graph",
    "penalty_terms",
    "sample_loss_graph",
    "statistic_outputs",
]


def batch_type(known: TensorType, batch: int | str) -> TensorType:
    """Return the type of a column of a batch."""
    if not known.shape:
        return known
    return TensorType(known.elem_type, (batch, *known.shape[1:]))


def builder(task: TrainingTask, model: ModelProto, prefix: str) -> GraphBuilder:
    """Return a builder for nodes to append to a graph of a task."""
    return GraphBuilder(
        opset_versions(model)[""],
        dtype=task.graph.dtype,
        existing_names=graph_names(model.graph) | OWN_NAMES | {task.objective.label},
        types=value_types(model) | dict.fromkeys(task.objective.strengths, TensorType(elem_type(task), ())),
        prefix=prefix,
    )


def batch_inputs(task: TrainingTask, batch: int | str) -> list[ValueInfoProto]:
    """Return the inputs of the objective other than features and weights."""
    inputs, objective = [], task.objective
    if objective.loss is not None:
        inputs.append(make_value_info(objective.label, batch_type(objective.label_type, batch)))
    if objective.weighted and objective.loss is not None:
        inputs.append(make_value_info(SAMPLE_WEIGHT, sample_type(task, batch)))
    scalar = TensorType(elem_type(task), ())
    return inputs + [make_value_info(name, scalar) for name in objective.strengths]


def sample_type(task: TrainingTask, batch: int | str) -> TensorType:
    """Return the type of the losses of a batch and of sample weights: per sample, or per position."""
    loss, labels = task.objective.loss, task.objective.label_type.shape or ()
    positions = labels[1:2] if loss is not None and loss.by_position else ()
    return TensorType(elem_type(task), (batch, *positions))


def elem_type(task: TrainingTask) -> int:
    """Return the ONNX type of scores, weights and states."""
    return helper.np_dtype_to_tensor_dtype(task.graph.dtype)


def with_batch_dimension(task: TrainingTask, batch: int | str) -> ModelProto:
    """Return the model of a task with the batch size as first dimension of the columns."""
    model = copy_model(task.graph.model)
    features = task.graph.features
    for value in model.graph.input:
        if value.name in features:
            value.CopyFrom(make_value_info(value.name, batch_type(features[value.name], batch)))
        elif value.name == task.objective.label:
            value.CopyFrom(make_value_info(value.name, batch_type(task.objective.label_type, batch)))
        elif value.name == SAMPLE_WEIGHT:
            value.CopyFrom(make_value_info(SAMPLE_WEIGHT, sample_type(task, batch)))
    del model.graph.value_info[:]
    if task.graph.sparse:
        model = with_sparse_products(model, task.graph.sparse, batch)
    return model


def sample_losses(task: TrainingTask, op: GraphBuilder, batch: int | str) -> str:
    """Write the loss of each sample of a batch, or of each of its positions."""
    objective, output = task.objective, task.graph.output
    assert objective.loss is not None
    op.set_type(objective.label, *batch_type(objective.label_type, batch))
    op.set_type(output, *batch_type(task.graph.output_type, batch))
    n_axes = len(sample_type(task, batch).shape or ())
    return write_losses(objective.loss, op, objective.label, output, n_axes)


def sample_loss_graph(task: TrainingTask) -> tuple[ModelProto, str]:
    """Return the graph of the loss of each sample or position, and the name of its output."""
    model = with_batch_dimension(task, BATCH)
    op = builder(task, model, "loss_")
    losses = sample_losses(task, op, BATCH)
    inputs = [value for value in batch_inputs(task, BATCH) if value.name != SAMPLE_WEIGHT]
    output = make_value_info(losses, sample_type(task, BATCH))
    return without_float64_softplus(append_nodes(model, op, inputs=inputs, outputs=[output])), losses


def objective_graph(task: TrainingTask, batch: int | str = BATCH) -> ModelProto:
    """Return the graph of the objective of a batch, including the penalty.

    If the penalty has a proximal step, a second output is the objective without the part of that step.
    """
    model = with_batch_dimension(task, batch)
    op = builder(task, model, "loss_")
    if task.objective.loss is None:
        value = task.graph.output
        if len(task.graph.output_type.shape or ()) > 0:
            value = op.ReduceSum(value, keepdims=0)
    else:
        weight = SAMPLE_WEIGHT if task.objective.weighted else None
        value = mean_loss(op, sample_losses(task, op, batch), weight)
    for info in model.graph.input:
        if info.name in task.graph.intercepts:
            shape = tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)
            op.set_type(info.name, elem_type(task), shape)
    terms = [value, *penalty_terms(op, task).values()]
    op.node("Identity", add_terms(op, terms), outputs=[OBJECTIVE])
    outputs = [OBJECTIVE]
    if task.is_proximal:
        smooth = [value, *penalty_terms(op, task, smooth_only=True).values()]
        op.node("Identity", add_terms(op, smooth), outputs=[SMOOTH])
        outputs.append(SMOOTH)
    scalar = TensorType(elem_type(task), ())
    infos = [*(make_value_info(name, scalar) for name in outputs), *statistic_outputs(task, model)]
    return append_nodes(model, op, inputs=batch_inputs(task, batch), outputs=infos)


def statistic_outputs(task: TrainingTask, model: ModelProto) -> list[ValueInfoProto]:
    """Return the outputs of a graph with the next running statistics."""
    results = set(task.graph.statistics.values())
    return [copy_value(value) for value in model.graph.output if value.name in results]


def penalty_graph(task: TrainingTask) -> ModelProto | None:
    """Return the graph from the weights to their penalty, or None if there is no penalty."""
    source = task.graph.model
    inputs = [copy_value(value) for value in source.graph.input if value.name in task.graph.intercepts]
    model = helper.make_model(
        helper.make_graph([], "penalty", inputs, []),
        opset_imports=source.opset_import,
        ir_version=source.ir_version,
    )
    op = builder(task, model, "penalty_")
    terms = penalty_terms(op, task)
    if not terms:
        return None
    op.node("Identity", add_terms(op, list(terms.values())), outputs=[OBJECTIVE])
    return append_nodes(model, op, outputs=[make_value_info(OBJECTIVE, TensorType(elem_type(task), ()))])


def differentiated(task: TrainingTask) -> str:
    """Return the output of the objective graph to differentiate for the updates."""
    return SMOOTH if task.is_proximal else OBJECTIVE


def mean_loss(op: GraphBuilder, losses: str, sample_weight: str | None) -> str:
    """Write ``sum(w * l) / sum(w)``, or the mean without weights."""
    if sample_weight is None:
        return op.ReduceMean(losses, keepdims=0)
    total = op.ReduceSum(op.Mul(losses, sample_weight), keepdims=0)
    tiny = float(np.finfo(op.float_dtype).tiny)
    return op.Div(total, op.Max(op.ReduceSum(sample_weight, keepdims=0), tiny))


def penalty_terms(op: GraphBuilder, task: TrainingTask, smooth_only: bool = False) -> dict[str, str]:
    """Write the penalty of each weight that has one, by weight."""
    found = {}
    for name in task.graph.weights:
        parts = task.penalties_of(name)
        if parts:
            smooth = [smooth_only and task.acts_by_step(part) for part in parts]
            with plugins.blamed(task.objective.penalty, "forward"):
                terms = [
                    part.smooth_part(op, name) if only else part.forward(op, name)
                    for part, only in zip(parts, smooth, strict=True)
                ]
            for part, term in zip(parts, terms, strict=True):
                check_penalty(part, op, name, term)
            written = [term for term in terms if term is not None]
            if written:
                found[name] = add_terms(op, written)
    return found


def add_terms(op: GraphBuilder, terms: Sequence[str]) -> str:
    """Write the sum of scalars."""
    total = terms[0]
    for term in terms[1:]:
        total = op.Add(total, term)
    return total
