"""Graphs of a training step: objective, gradient and update, together or separate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from .. import plugins
from ..differentiation import gradient_of_loss
from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    copy_model,
    graph_names,
    make_value_info,
    map_names,
    opset_versions,
    value_types,
)
from ..graphs.editing import with_fields
from ..losses.written_losses import write_losses
from .averaging import append_sums
from .clipping import clip_gradients
from .objective import add_terms, mean_loss, penalty_terms
from .sparse_products import with_sparse_products
from .task import TrainingTask

__all__ = [
    "Carried",
    "StepGraph",
    "append_updates",
    "differentiated",
    "objective_graph",
    "row_loss_graph",
    "statistic_outputs",
    "step_graph",
]

SAMPLE_WEIGHT = "ortlearn_sample_weight"
ROWS = "ortlearn_rows"
RATE = "ortlearn_rate"
OBJECTIVE = "ortlearn_objective"
SMOOTH = "ortlearn_smooth_objective"
BATCH = "batch"
#: Reserved names.
OWN_NAMES = {SAMPLE_WEIGHT, ROWS, RATE, OBJECTIVE}


@dataclass(frozen=True)
class Carried:
    """A weight or state that a step updates.

    Attributes
    ----------
    weight : str
        Weight.
    state : str or None
        Name of the state; None for the weight itself.
    source, result : str
        Input and output of the graph.
    """

    weight: str
    state: str | None
    source: str
    result: str


@dataclass(frozen=True)
class StepGraph:
    """A graph that updates weights.

    Attributes
    ----------
    model : onnx.ModelProto
        Graph.
    value : str or None
        Output with the objective (or the penalty, in an update graph without a loss).
    carried : list of Carried
        Weights and states.
    """

    model: ModelProto
    value: str | None
    carried: list[Carried]


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
        types=value_types(model),
        prefix=prefix,
    )


def batch_inputs(task: TrainingTask, batch: int | str) -> list[ValueInfoProto]:
    """Return the inputs of the objective other than features and weights."""
    inputs, objective = [], task.objective
    if objective.loss is not None:
        inputs.append(make_value_info(objective.label, batch_type(objective.label_type, batch)))
    if objective.weighted and objective.loss is not None:
        inputs.append(make_value_info(SAMPLE_WEIGHT, row_type(task, batch)))
    return inputs


def row_type(task: TrainingTask, batch: int | str) -> TensorType:
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
            value.CopyFrom(make_value_info(SAMPLE_WEIGHT, row_type(task, batch)))
    del model.graph.value_info[:]
    if task.graph.sparse:
        model = with_sparse_products(model, task.graph.sparse, batch)
    return model


def row_losses(task: TrainingTask, op: GraphBuilder, batch: int | str) -> str:
    """Write the loss of each sample of a batch, or of each of its positions."""
    objective, output = task.objective, task.graph.output
    assert objective.loss is not None
    op.set_type(objective.label, *batch_type(objective.label_type, batch))
    op.set_type(output, *batch_type(task.graph.output_type, batch))
    n_axes = len(row_type(task, batch).shape or ())
    return write_losses(objective.loss, op, objective.label, output, n_axes)


def row_loss_graph(task: TrainingTask) -> tuple[ModelProto, str]:
    """Return the graph of the loss of each sample or position, and the name of its output."""
    model = with_batch_dimension(task, BATCH)
    op = builder(task, model, "loss_")
    rows = row_losses(task, op, BATCH)
    inputs = [value for value in batch_inputs(task, BATCH) if value.name != SAMPLE_WEIGHT]
    output = make_value_info(rows, row_type(task, BATCH))
    return append_nodes(model, op, inputs=inputs, outputs=[output]), rows


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
        value = mean_loss(op, row_losses(task, op, batch), SAMPLE_WEIGHT if task.objective.weighted else None)
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


def step_graph(task: TrainingTask) -> StepGraph:
    """Return the graph of a step: gather, objective, gradient and update.

    Its inputs are the columns of all samples, the sample indices of a batch (``ortlearn_rows``), weights,
    learning rate (``ortlearn_rate``) and states.
    """
    objective, target, names = objective_graph(task), differentiated(task), task.graph.weights
    gradient = gradient_of_loss(
        objective, target, task.graph.learned, task.gradient, keep_outputs=True, origin=task.graph.origin
    )
    columns = [copy_value(value) for value in gradient.graph.input if value.name not in names]
    results = [value.name for value in gradient.graph.output]
    gradients = dict(zip(task.graph.learned, results[-len(task.graph.learned) :], strict=True))
    gradient = map_names(gradient, {value.name: f"ortlearn_batch_{value.name}" for value in columns})
    op = builder(task, gradient, "gather_")
    for value in columns:
        op.node("Gather", value.name, ROWS, outputs=[f"ortlearn_batch_{value.name}"], axis=0)
        if value.type.tensor_type.shape.dim:
            value.type.tensor_type.shape.dim[0].dim_param = "rows"
    rows = make_value_info(ROWS, TensorType(TensorProto.INT64, (BATCH,)))
    gathered = append_nodes(gradient, op, first=True)
    weights = [value for value in gathered.graph.input if value.name in names]
    gathered = with_fields(gathered, input=[*columns, rows, *weights])
    return append_updates(task, gathered, gradients, OBJECTIVE)


def copy_value(value: ValueInfoProto) -> ValueInfoProto:
    """Return a copy, which stays valid when the graph is changed."""
    return ValueInfoProto.FromString(value.SerializeToString())


def renamed_value(value: ValueInfoProto, name: str) -> ValueInfoProto:
    """Return a copy with another name."""
    copied = copy_value(value)
    copied.name = name
    return copied


def append_model(op: GraphBuilder, model: ModelProto, names: Mapping[str, str], node_name: str) -> None:
    """Append the nodes and constants of a model with renamed tensors; ``node_name`` is a format."""
    renamed = map_names(model, names)
    for node in renamed.graph.node:
        node.name = node_name.format(node.name) if node.name else ""
    op.nodes.extend(renamed.graph.node)
    op.initializers.extend(renamed.graph.initializer)
    for domain, version in opset_versions(renamed).items():
        op.opsets.setdefault(domain, version)


def append_updates(
    task: TrainingTask, model: ModelProto, gradients: dict[str, str], value: str | None
) -> StepGraph:
    """Append the updates of all weights; outputs are the value, then the new weights and states.

    Gradients are clipped first, if the task has bounds. Running statistics are updated if the model computes
    them here, and otherwise unchanged. If the graph already reads the learning rate, gradients include its
    negative as a factor, and the update gets a rate of -1.
    """
    op = builder(task, model, "update_")
    types = {v.name: v for v in model.graph.input}
    inputs = []
    rate = RATE
    if RATE in types:
        rate = op.constant(-1.0)
    else:
        inputs.append(make_value_info(RATE, TensorType(elem_type(task), ())))
    learned = {name: grad for name, grad in gradients.items() if name not in task.graph.statistics}
    gradients = clip_gradients(op, learned, task.update.clip_value, task.update.clip_norm)
    made = {value.name for value in model.graph.output}
    weights, before, after = {}, {}, {}
    for name in task.graph.weights:
        shape = tuple(d.dim_value for d in types[name].type.tensor_type.shape.dim)
        before[name], infos = _state_inputs(task, op, name, shape)
        inputs += infos
        if name in task.graph.statistics:
            result = task.graph.statistics[name]
            weights[name] = result if result in made else op.Identity(name)
            after[name] = {state: op.Identity(source) for state, source in before[name].items()}
            continue
        with plugins.blamed(task.update.learning_rate, "update"):
            new, after[name] = task.update.learning_rate.update(op, name, gradients[name], before[name], rate)
        weights[name] = _bounded(task, op, name, _proximal(task, op, name, new, shape))
    averaged = {name: weights[name] for name in task.graph.learned}
    sums = append_sums(task.update.learning_rate, op, averaged, before)
    types |= {info.name: info for info in inputs}
    outputs = [copy_value(v) for v in model.graph.output if v.name == value]
    carried = []
    for name in task.graph.weights:
        carried.append(Carried(name, None, name, weights[name]))
        for state, result in {**after[name], **sums.get(name, {})}.items():
            carried.append(Carried(name, state, before[name][state], result))
    outputs += [renamed_value(types[item.source], item.result) for item in carried]
    return StepGraph(append_nodes(model, op, inputs=inputs, outputs=outputs), value, carried)


def _proximal(task: TrainingTask, op: GraphBuilder, name: str, new: str, shape: tuple[int, ...]) -> str:
    """Append the proximal step of the penalty to the update of a weight, if any."""
    parts = task.penalties_of(name) if task.is_proximal else []
    steps = [part for part in parts if task.acts_by_step(part)]
    scale = task.update.learning_rate.proximal_scale
    length = op.Mul(RATE, float(scale)) if steps and scale not in (None, 1.0) else RATE
    for part in steps:
        op.set_type(new, elem_type(task), shape)
        new = part.proximal_step(op, new, length)
    return new


def _bounded(task: TrainingTask, op: GraphBuilder, name: str, new: str) -> str:
    """Append the projection of a non-negative weight, which is exact after a proximal step."""
    return op.Max(new, 0.0) if name in task.update.not_negative else new


def _state_inputs(
    task: TrainingTask, op: GraphBuilder, weight: str, shape: tuple[int, ...]
) -> tuple[dict[str, str], list[ValueInfoProto]]:
    names, infos = {}, []
    for state, array in task.update.learning_rate.init(np.zeros(shape, dtype=task.graph.dtype)).items():
        names[state] = op.unique(f"{weight}_{state}")
        known = TensorType(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        infos.append(make_value_info(names[state], known))
        op.set_type(names[state], *known)
    return names, infos
