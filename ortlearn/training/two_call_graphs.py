"""The graphs around a forward and a backward of their own: the loss and its gradient, the update."""

from __future__ import annotations

from onnx import ModelProto, ValueInfoProto

from ..differentiation import gradient_of_loss
from ..graphs import TensorType, append_nodes, copy_model, make_value_info, map_names
from .objective import add_terms, mean_loss, penalty_terms
from .step_graphs import (
    BATCH,
    OBJECTIVE,
    SAMPLE_WEIGHT,
    SMOOTH,
    StepGraph,
    append_updates,
    batch_inputs,
    batch_type,
    builder,
    copy_value,
    differentiated,
    elem_type,
    row_losses,
)
from .task import TrainingTask

__all__ = ["loss_gradient_graph", "update_graph"]


def _empty_model(task: TrainingTask, inputs: list[ValueInfoProto]) -> ModelProto:
    model = copy_model(task.graph)
    for field in (
        model.graph.node,
        model.graph.initializer,
        model.graph.input,
        model.graph.output,
        model.graph.value_info,
    ):
        del field[:]
    model.graph.input.extend(inputs)
    return model


def loss_gradient_graph(task: TrainingTask) -> ModelProto:
    """Return the graph from labels and scores to the objective (without penalty) and its gradient.

    Outputs are ``ortlearn_objective`` and ``<output>_grad``.
    """
    scores = make_value_info(task.output, batch_type(task.output_type, BATCH))
    model = _empty_model(task, [scores])
    op = builder(task, model, "loss_")
    value = mean_loss(op, row_losses(task, op, BATCH), SAMPLE_WEIGHT if task.weighted else None)
    op.node("Identity", value, outputs=[OBJECTIVE])
    output = make_value_info(OBJECTIVE, TensorType(elem_type(task), ()))
    model = append_nodes(model, op, inputs=batch_inputs(task, BATCH), outputs=[output])
    return gradient_of_loss(model, OBJECTIVE, [task.output], task.gradient)


def update_graph(task: TrainingTask) -> StepGraph:
    """Return the graph that adds the penalty's gradient and updates all weights.

    Its inputs are the weights, ``<weight>_grad`` of each, the learning rate and the states; its
    value is the penalty, None where there is none.
    """
    values = [copy_value(v) for v in task.graph.graph.input if v.name in task.weights]
    model = _empty_model(task, values)
    gradients = {name: f"{name}_grad" for name in task.weights}
    received = []
    for value in values:
        gradient = copy_value(value)
        gradient.name = f"{value.name}_grad"
        received.append(gradient)
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
    """Append the updates to the graph of a penalty, whose gradients are added to those of the loss."""
    own = gradient_of_loss(penalty, differentiated(task), reached, task.gradient, keep_outputs=True)
    own = map_names(own, {f"{name}_grad": f"{name}_penalty_grad" for name in reached})
    known = {value.name for value in own.graph.input}
    own.graph.input.extend(value for value in inputs if value.name not in known)
    op = builder(task, own, "sum_")
    totals = {name: op.Add(gradients[name], f"{name}_penalty_grad") for name in reached}
    return append_updates(task, append_nodes(own, op), {**gradients, **totals}, OBJECTIVE)
