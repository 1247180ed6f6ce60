"""Graphs of a step with separate calls for forward and backward."""

from __future__ import annotations

from typing import NamedTuple

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from ...differentiation import gradient_of_loss
from ...differentiation.types.inference import infer_types
from ...graphs import TensorType, append_nodes, make_value_info, map_names, node_inputs, value_types
from ...graphs.editing import with_fields
from ...graphs.nodes import needed_nodes
from ...graphs.queries import copy_value, renamed_value
from ..graphs.names import BATCH, OBJECTIVE, RATE, SAMPLE_INDICES, SAMPLE_WEIGHT, SMOOTH
from ..graphs.objective import (
    add_terms,
    batch_inputs,
    batch_type,
    builder,
    differentiated,
    elem_type,
    mean_loss,
    penalty_terms,
    sample_losses,
)
from ..graphs.step_graphs import StepGraph, append_updates
from ..graphs.task import TrainingTask
from .epoch_graph import RANDOM, all_samples, batch_graph, gathered_columns, with_gathers

__all__ = ["TwoCallGraphs", "loss_gradient_graph", "two_call_graphs", "update_graph"]


#: Output of the graph of the rate, if batches use the rate itself.
UNUSED = "ortlearn_unused"


class TwoCallGraphs(NamedTuple):
    """A step on a batch in two graphs, which gather the batch from the columns of all samples."""

    # From features, ``ortlearn_rows`` (sample indices) and weights to scores and saved tensors.
    forward: StepGraph
    # From the rate to tensors that depend on nothing else.
    rate: StepGraph
    # From these, labels, rate, weights and states to the objective and new weights and states.
    backward: StepGraph


def two_call_graphs(task: TrainingTask, size: int | str = BATCH) -> TwoCallGraphs:
    """Return the graphs of a step on a batch, split after the output of the model."""
    if task.gradient == "auto":
        task = task.changed(gradient="rules")
    step = batch_graph(task, size, keep_output=True)
    columns = {name: all_samples(copy_value(_input(step, name))) for name in gathered_columns(task, step)}
    model = with_gathers(step.model, list(columns), SAMPLE_INDICES)
    nodes, output = list(model.graph.node), task.graph.output
    first = needed_nodes(nodes, [output])
    made = {name for node in first for name in node.output}
    late, of_rate = _split_rate(model, [node for node in nodes if made.isdisjoint(node.output)])
    read = {name for node in late for name in node_inputs(node)}
    saved, products = (
        [name for node in part for name in node.output if name in read] for part in (first, of_rate)
    )
    indices = make_value_info(SAMPLE_INDICES, TensorType(TensorProto.INT64, (size,)))
    inputs = [*columns.values(), indices, *(v for v in step.model.graph.input if v.name not in columns)]
    types = value_types(infer_types(with_fields(model, input=inputs)), infer=False)
    infos = [make_value_info(name, types[name]) for name in saved]
    scalars = [make_value_info(name, types[name]) for name in products]
    results = [value for value in model.graph.output if value.name not in saved]
    early = [value for value in results if value.name in made]
    forward = _part(model, first, inputs, [*early, *infos])
    if not products:  # a graph has an output
        of_rate = [helper.make_node("Identity", [RATE], [UNUSED])]
    rate = _part(model, of_rate, inputs, scalars or [make_value_info(UNUSED, types[RATE])])
    backward = _part(model, late, [*inputs, *infos, *scalars], [v for v in results if v.name not in made])
    backward_step = StepGraph(backward, OBJECTIVE, step.carried)
    return TwoCallGraphs(StepGraph(forward, None, []), StepGraph(rate, None, []), backward_step)


def _split_rate(model: ModelProto, nodes: list[NodeProto]) -> tuple[list[NodeProto], list[NodeProto]]:
    """Split nodes into those of every batch, and those that depend on constants and the rate only."""
    known = {RATE, *(tensor.name for tensor in model.graph.initializer)}
    results = {value.name for value in model.graph.output}
    of_batch, of_rate = [], []
    for node in nodes:
        reads = node_inputs(node)
        if reads and reads <= known and node.op_type not in RANDOM and results.isdisjoint(node.output):
            known.update(node.output)
            of_rate.append(node)
        else:
            of_batch.append(node)
    return of_batch, of_rate


def _input(step: StepGraph, name: str) -> ValueInfoProto:
    return next(value for value in step.model.graph.input if value.name == name)


def _part(
    model: ModelProto, nodes: list[NodeProto], inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]
) -> ModelProto:
    """Return a model with some of the nodes."""
    read = {name for node in nodes for name in node_inputs(node)} | {value.name for value in outputs}
    constants = [tensor for tensor in model.graph.initializer if tensor.name in read]
    needed = [value for value in inputs if value.name in read]
    return with_fields(model, node=nodes, initializer=constants, input=needed, output=outputs, value_info=[])


def _empty_model(task: TrainingTask, inputs: list[ValueInfoProto]) -> ModelProto:
    return with_fields(task.graph.model, node=[], initializer=[], input=inputs, output=[], value_info=[])


def loss_gradient_graph(task: TrainingTask) -> ModelProto:
    """Return the graph from labels and scores to the objective (without penalty) and ``<output>_grad``."""
    scores = make_value_info(task.graph.output, batch_type(task.graph.output_type, BATCH))
    model = _empty_model(task, [scores])
    op = builder(task, model, "loss_")
    value = mean_loss(op, sample_losses(task, op, BATCH), SAMPLE_WEIGHT if task.objective.weighted else None)
    op.node("Identity", value, outputs=[OBJECTIVE])
    output = make_value_info(OBJECTIVE, TensorType(elem_type(task), ()))
    model = append_nodes(model, op, inputs=batch_inputs(task, BATCH), outputs=[output])
    return gradient_of_loss(model, OBJECTIVE, [task.graph.output], task.gradient)


def update_graph(task: TrainingTask) -> StepGraph:
    """Return the graph that adds the penalty's gradient and updates all weights.

    Its inputs are the weights, ``<weight>_grad`` of each, the learning rate and the states; its value is the
    penalty, or None.
    """
    values = [copy_value(v) for v in task.graph.model.graph.input if v.name in task.graph.weights]
    model = _empty_model(task, values)
    gradients = {name: f"{name}_grad" for name in task.graph.weights}
    received = [renamed_value(value, gradients[value.name]) for value in values]
    op = builder(task, model, "penalty_")
    terms = penalty_terms(op, task)
    if not terms:
        model.graph.input.extend(received)
        return append_updates(task, model, gradients, None)
    op.node("Identity", add_terms(op, list(terms.values())), outputs=[OBJECTIVE])
    scalar = TensorType(elem_type(task), ())
    outputs = [make_value_info(OBJECTIVE, scalar)]
    if task.is_proximal:
        terms = penalty_terms(op, task, smooth_only=True)
        if terms:
            op.node("Identity", add_terms(op, list(terms.values())), outputs=[SMOOTH])
            outputs.append(make_value_info(SMOOTH, scalar))
    penalty = append_nodes(model, op, outputs=outputs)
    if not terms:
        penalty.graph.input.extend(received)
        return append_updates(task, penalty, gradients, OBJECTIVE)
    return _with_penalty_gradients(task, penalty, gradients, list(terms), [*values, *received])


def _with_penalty_gradients(
    task: TrainingTask,
    penalty: ModelProto,
    gradients: dict[str, str],
    reached: list[str],
    inputs: list[ValueInfoProto],
) -> StepGraph:
    """Add the gradients of a penalty to those of the loss, and append the updates."""
    own = gradient_of_loss(penalty, differentiated(task), reached, task.gradient, keep_outputs=True)
    own = map_names(own, {f"{name}_grad": f"{name}_penalty_grad" for name in reached})
    known = {value.name for value in own.graph.input}
    own.graph.input.extend(value for value in inputs if value.name not in known)
    op = builder(task, own, "sum_")
    totals = {name: op.Add(gradients[name], f"{name}_penalty_grad") for name in reached}
    return append_updates(task, append_nodes(own, op), {**gradients, **totals}, OBJECTIVE)
