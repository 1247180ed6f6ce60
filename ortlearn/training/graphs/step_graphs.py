"""Graph of a training step: gather, objective, gradient and update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from ... import plugins
from ...differentiation import gradient_of_loss
from ...graphs import GraphBuilder, TensorType, append_nodes, make_value_info, map_names, opset_versions
from ...graphs.editing import with_fields
from ...graphs.queries import copy_value, renamed_value
from ...runtime.buffers import Carried
from .averaging import append_sums
from .clipping import clip_gradients
from .names import BATCH, OBJECTIVE, RATE, SAMPLE_INDICES
from .objective import builder, differentiated, elem_type, objective_graph
from .plugin_results import check_states, check_update
from .task import TrainingTask

__all__ = ["StepGraph", "append_updates", "step_graph"]


@dataclass(frozen=True)
class StepGraph:
    """A graph that updates weights."""

    model: ModelProto
    value: str | None  # output with the objective (without a loss, the penalty)
    carried: list[Carried]  # weights and states


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
        op.node("Gather", value.name, SAMPLE_INDICES, outputs=[f"ortlearn_batch_{value.name}"], axis=0)
        if value.type.tensor_type.shape.dim:
            value.type.tensor_type.shape.dim[0].dim_param = "rows"
    indices = make_value_info(SAMPLE_INDICES, TensorType(TensorProto.INT64, (BATCH,)))
    gathered = append_nodes(gradient, op, first=True)
    weights = [value for value in gathered.graph.input if value.name in names]
    gathered = with_fields(gathered, input=[*columns, indices, *weights])
    return append_updates(task, gathered, gradients, OBJECTIVE)


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
            updated = task.update.learning_rate.update(op, name, gradients[name], before[name], rate)
        check_update(task.update.learning_rate, op, name, gradients[name], before[name], updated)
        new, after[name] = updated
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
    states = task.update.learning_rate.init(np.zeros(shape, dtype=task.graph.dtype))
    check_states(task.update.learning_rate, states)
    for state, array in states.items():
        names[state] = op.unique(f"{weight}_{state}")
        known = TensorType(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        infos.append(make_value_info(names[state], known))
        op.set_type(names[state], *known)
    return names, infos
