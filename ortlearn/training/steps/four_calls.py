"""A batch as four calls: forward, loss, backward and update."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...data.samples import Data
from ...graphs import extract_model, make_initializers_of, map_names
from ...graphs.editing import with_fields
from ...runtime.calls import saved_tensors
from ...runtime.devices import ort_value
from ...runtime.sessions import make_session, session_options
from ..graphs.names import OBJECTIVE, SAMPLE_WEIGHT
from ..graphs.task import TrainingTask
from .base_step import BaseStep
from .batch_step import Part, Plan, Tensors
from .engines import SplitEngine
from .forward_backward import OrtGradientForwardBackward
from .two_call_graphs import loss_gradient_graph, update_graph

__all__ = ["four_calls"]

PENALTY = "ortlearn_penalty"


def four_calls(step: BaseStep, size: int | str) -> Plan:
    """Return four calls per batch; the loss may be a Python function."""
    task, device, n_jobs = step.task, step.device, step.threads(size)
    output, statistics, loss = task.graph.output, task.graph.statistics, task.objective.loss
    update = update_graph(task)
    models = {"update": map_names(update.model, {OBJECTIVE: PENALTY})}
    has_graph = loss is not None and not loss.in_python
    if has_graph:
        models["loss"] = loss_gradient_graph(task)
    if statistics:  # the update copies them unchanged
        models["statistics"] = extract_model(task.graph.model, list(statistics.values()))
    sessions = {name: make_session(model, device, n_jobs, spins=False) for name, model in models.items()}
    model = make_initializers_of(task.graph.model, task.graph.weights)
    function = OrtGradientForwardBackward(
        with_fields(model, output=model.graph.output[:1]),
        weights_to_train=task.graph.weights,
        sess_options=session_options(n_jobs, spins=False),
        providers=device,
        gradient=task.gradient,
        input_gradients=False,
    ).new_instance()

    engine = function.owner._engine
    split = engine if isinstance(engine, SplitEngine) and not engine.has_dynamic_shapes else None

    def forward(values: Tensors) -> Callable[[], Any]:
        inputs = [values[name] for name in [*function.owner.input_names, *task.graph.weights]]
        vectors = function.input_to_ort(inputs), function.input_to_ort([values[output]])
        return partial(function.forward, vectors[0], True, vectors[1])

    def backward(values: Tensors) -> Callable[[], Any]:
        gradients = [values[f"{name}_grad"] for name in task.graph.weights]
        vectors = function.input_to_ort([values[f"{output}_grad"]]), function.input_to_ort(gradients)
        return partial(function.backward, *vectors)

    def between(size: int, data: Data, values: Tensors) -> Tensors:
        """Return output, gradients and saved tensors, and the objective of a loss in Python."""
        shapes = {f"{name}_grad": values[name].shape() for name in task.graph.weights}
        shapes[output] = shapes[f"{output}_grad"] = _output_shape(task, size, data.y)
        found = {name: ort_value(np.ones(s, dtype=task.graph.dtype), device) for name, s in shapes.items()}
        if split is not None:
            found |= dict.fromkeys(split.gradients, found[f"{output}_grad"])
            found |= saved_tensors(split.session, values | found, device)
        return found if has_graph else {**found, OBJECTIVE: np.zeros(())}

    def parts(size: int) -> list[Part]:
        middle = sessions["loss"] if has_graph else partial(_python_loss, step)
        last = [sessions["statistics"]] if statistics else []
        first, second = (forward, backward) if split is None else (split.session, split.backward_session)
        return [first, middle, second, sessions["update"], *last]

    def running(weights: Tensors) -> Tensors:
        return {result: weights[name] for name, result in statistics.items()}

    terms = (OBJECTIVE,) if update.value is None else (OBJECTIVE, PENALTY)
    models = {**function.owner.models_, **models}
    return Plan(models, update.carried, parts, between, running, terms, gathers=False)


def _python_loss(step: BaseStep, values: Tensors) -> Callable[[], None]:
    """Return a function that computes the objective from the output of the model, and its gradient."""
    graph, objective = step.task.graph, step.task.objective
    output, total, loss = values[graph.output], values[OBJECTIVE], objective.loss
    if loss is None:
        return lambda: total.fill(np.sum(output.numpy()))
    labels, slopes = values[objective.label], values[f"{graph.output}_grad"]
    weights = values[SAMPLE_WEIGHT] if objective.weighted else None

    def run() -> None:
        shares = None if weights is None else weights.numpy()
        total[()], gradient = _evaluate(step, loss, labels.numpy(), output.numpy(), shares)
        slopes.update_inplace(gradient)

    return run


def _evaluate(
    step: BaseStep, loss: Any, labels: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None
) -> tuple[float, np.ndarray]:
    """Return the objective of a Python loss and its gradient."""
    # copies, since the function may overwrite its arguments, and backward reads the outputs
    losses, gradient = loss.evaluate(labels.copy(), predicted.copy())
    if step.checks_loss and hasattr(loss, "check_batch"):
        loss.check_batch(labels, predicted, losses, gradient)
        step.checks_loss = False
    weights = np.ones_like(losses) if weights is None else weights
    # zero if all weights are zero, as in mean_loss
    shares = weights / max(weights.sum(), np.finfo(losses.dtype).tiny)
    axes = tuple(range(shares.ndim, gradient.ndim))
    return float(losses.ravel() @ shares.ravel()), gradient * np.expand_dims(shares, axes)


def _output_shape(task: TrainingTask, size: int, labels: np.ndarray) -> tuple[int, ...]:
    """Return the shape of the scores or of the loss of the graph; dynamic axes are those of the labels."""
    shape = task.graph.output_type.shape or ()
    if task.objective.loss is None:
        return tuple(dim for dim in shape if isinstance(dim, int))
    rest = (dim if isinstance(dim, int) else labels.shape[axis] for axis, dim in enumerate(shape))
    return (size, *(dim for axis, dim in enumerate(rest) if axis))
