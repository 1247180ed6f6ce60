"""Training of a configuration: samples and the last fitted model go in, a new fitted model comes out."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, column_or_1d

from .. import conversion
from ..differentiation import require_gradients
from ..training import Data, LoopSettings, TrainingResult, hoist, run_training
from ..training.averaging import begin_later
from ..training.hoisting import needs_hoisting
from ..training.step_graphs import OBJECTIVE, objective_graph
from .callbacks import EstimatorView, FitTask
from .class_weights import objective_weights
from .configuration import Configuration
from .fidelity import warn_of_differences
from .fitted_model import FittedModel
from .inference import Inference
from .input_validation import InputFeatures, matrix_of, read_before_fit, read_samples
from .partial_fit_classes import read_classes
from .problem import Problem
from .samples import Samples, check_lengths, hold_out
from .targets import one_class
from .training_state import TrainingState
from .validation import Validation

__all__ = ["fit_model", "partial_fit_model"]


@dataclass(frozen=True)
class Start:
    """What a training begins with."""

    problem: Problem
    features: InputFeatures
    weights: dict[str, np.ndarray]
    state: TrainingState = TrainingState()


def fit_model(
    configuration: Configuration,
    samples: Samples,
    held_out: Samples | None,
    last: FittedModel | None,
    view: EstimatorView,
) -> FittedModel:
    """Return a model that is trained for ``max_iter`` epochs.

    ``early_stopping`` holds samples out where there are none, a warm start begins with the weights of the
    last model, and the view shows the training to callbacks and scorers.
    """
    configuration.check_fit()
    random_state = check_random_state(configuration.random_state)
    if configuration.stopping.early_stopping and held_out is None:
        samples, held_out = hold_out(samples, configuration, random_state)
    max_iter = configuration.stopping.max_iter
    task = view.begin_task("fit", samples, max_iter)
    last = last if configuration.warm_start else None
    start, data = _begin(configuration, samples, random_state, last)
    validation = None if held_out is None else _validation(configuration, start, held_out, view)
    settings = configuration.loop_settings(max_iter, (), stream=False)
    return _train(configuration, start, data, settings, random_state, validation, task)


def partial_fit_model(
    configuration: Configuration,
    samples: Samples,
    classes: Any,
    last: FittedModel | None,
    view: EstimatorView,
) -> FittedModel:
    """Return a model that is trained for one epoch more than the last one."""
    configuration.check_partial_fit(classes)
    random_state = check_random_state(configuration.random_state)
    expected = read_classes(classes, samples.y)
    task = view.begin_task("partial_fit", samples, 1)
    if last is None:
        if expected is not None:
            expected.check_labels(samples.y)
        known = None if expected is None else expected.classes
        start, data = _begin(configuration, samples, random_state, None, known)
        order = copy.deepcopy(random_state)
    else:
        start, data = _continue(configuration, samples, last)
        order = copy.deepcopy(last.state.random_state or random_state)
    if expected is not None:
        whose = "the model" if last is None else "the first call"
        expected.check_known(start.problem.targets.classes, whose)
    settings = configuration.loop_settings(1, start.state.train_losses, stream=True)
    return _train(configuration, start, data, settings, order, None, task)


def _begin(
    configuration: Configuration,
    samples: Samples,
    random_state: np.random.RandomState,
    last: FittedModel | None,
    classes: Any = None,
) -> tuple[Start, Data]:
    """Convert the model, check the samples; return what a training without earlier state begins with."""
    problem, features, data = _posed(configuration, samples, random_state, last, classes)
    return Start(problem, features, _starting_weights(configuration, problem, random_state, last)), data


def _continue(configuration: Configuration, samples: Samples, last: FittedModel) -> tuple[Start, Data]:
    """Return what a training that continues the last one begins with."""
    problem = last.problem.reconfigured(configuration, samples.y)
    check_lengths(samples.X, samples.y)
    data = _data(problem, read_samples(problem, samples.X, last.features), samples)
    return Start(problem, last.features, last.next_weights(problem.trainable.trained), last.state), data


def _posed(configuration, samples, random_state, last, classes) -> tuple[Problem, InputFeatures, Data]:
    X, y, name = samples.X, samples.y, configuration.name
    check_lengths(X, y)
    _check_order_of_features(configuration, X, last)
    rows = features = None
    if not conversion.is_onnx_source(configuration.source):
        features = InputFeatures.of(X, name)
        dtype = np.dtype(configuration.conversion.dtype)
        rows = read_before_fit(X, features, configuration.source, dtype)
        _check_several_classes(configuration, y, classes)
        samples = samples.with_checked_weights()
    problem = Problem.of(configuration, X, y, samples.sample_weight, random_state, classes)
    _warn_of_one_column(problem, configuration, y)
    features = features or InputFeatures.of(matrix_of(problem, X), name)
    rows = read_samples(problem, X, features, rows)
    if problem.source is None and problem.trainable.head is not None:
        # Scores of other numbers of samples would be broadcast to the labels without a word.
        Inference(problem, problem.trainable.model, configuration.runtime).decision_function(rows[:3])
    samples = samples.with_checked_weights()
    problem = problem.with_class_weights(configuration.class_weight, y, samples.sample_weight)
    data = _data(problem, rows, samples)
    warn_of_differences(problem, samples, rows, configuration.runtime)
    return problem, features, data


def _check_order_of_features(configuration: Configuration, X: Any, last: FittedModel | None) -> None:
    """Check that training goes on with the columns it began with, by name and in their order."""
    source = configuration.source
    if not conversion.is_onnx_source(source) and conversion.is_fitted(source):
        conversion.check_feature_names(source, X)
    elif last is not None and not last.problem.trainable.selects_by_name:
        last.features.check_order(X)


def _check_several_classes(configuration: Configuration, y: Any, classes: Any) -> None:
    """Check that a classifier that is not fitted has more than one class to tell apart."""
    if classes is None and y is not None and not conversion.is_fitted(configuration.source):
        one = one_class(y)
        if one is not None and configuration.estimator_type == "classifier":
            raise ValueError(f"A classifier needs samples of at least 2 classes, y has 1 class: [{one!r}].")


def _warn_of_one_column(problem: Problem, configuration: Configuration, y: Any) -> None:
    """Warn, as scikit-learn does, of y with one column for a regressor of one output."""
    head = problem.trainable.head
    if head is None or head.task != "regression" or problem.source is None:
        return
    if problem.targets.ndim == 2 and head.n_outputs == 1 and not configuration.multi_output:
        column_or_1d(y, warn=True)


def _data(problem: Problem, rows: Any, samples: Samples) -> Data:
    """Return samples, labels and weights as the graph takes them."""
    n_samples = rows.shape[0]
    labels = problem.encoder.encode(samples.y, n_samples)
    weights = samples.with_checked_weights().sample_weight
    return Data(rows, labels, objective_weights(problem, samples.y, weights, n_samples))


def _validation(
    configuration: Configuration, start: Start, samples: Samples, view: EstimatorView
) -> Validation:
    problem = start.problem
    if problem.needs_labels and samples.y is None:
        raise ValueError("X_val and y_val go together: pass both or none.")
    samples = samples.with_checked_weights()
    check_lengths(samples.X, samples.y)
    data = _data(problem, read_samples(problem, samples.X, start.features), samples)
    return Validation(configuration, problem, start.features, samples, data, view.with_model)


def _starting_weights(
    configuration: Configuration, problem: Problem, random_state, last: FittedModel | None
) -> dict[str, np.ndarray]:
    """Return fresh weights, or for a warm start those of the last solution or of the model."""
    trainable = problem.trainable
    own = trainable.initial_weights()
    if not configuration.warm_start:
        return conversion.draw_weights(own, trainable.weights, random_state, trainable.constraints)
    if last is None:
        return own
    weights = last.next_weights(trainable.trained)
    if {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in own.items()}:
        raise ValueError(
            "warm_start=True goes on from the last solution, whose weights have other shapes than "
            "the model for these data: set warm_start=False, or fit a clone."
        )
    return weights


def _train(
    configuration: Configuration,
    start: Start,
    data: Data,
    settings: LoopSettings,
    random_state: np.random.RandomState,
    validation: Validation | None,
    task: FitTask | None,
) -> FittedModel:
    problem = start.problem
    step, data = _new_step(problem, data, start.state.n_seen, configuration)
    learning_rate, history = step.task.update.learning_rate, start.state.history

    def model_after(result: TrainingResult) -> FittedModel:
        trained = problem.trainable.with_stable_weights(result.weights)
        state = start.state.after(result, random_state, len(data))
        inference = Inference(problem, trained, configuration.runtime)
        return FittedModel(problem, start.features, trained, state, step, inference)

    epoch = "iteration" if learning_rate.full_batch else "epoch"
    validate = None if validation is None else validation.measure
    observer = None if task is None else task.observer(epoch, history, model_after)
    states = begin_later(start.state.states, learning_rate)
    result = run_training(
        step, data, start.weights, settings, random_state, states=states, validate=validate, observer=observer
    )
    step.release()
    model = model_after(result)
    if task is not None:
        task.end(model)
    return model


def _new_step(problem: Problem, data: Data, n_seen: int, configuration: Configuration) -> tuple[Any, Data]:
    """Build the training step, and return the samples as it takes them."""
    runtime = configuration.runtime
    task = problem.task(data.sample_weight is not None, len(data), n_seen)
    if configuration.hoist or needs_hoisting(task):
        task, data = hoist(task, data, runtime.device, runtime.n_jobs)
    graph, loss = task.graph, task.objective.loss
    if loss is None or not loss.in_python:
        score, names = None if loss is None else graph.output, problem.trainable.original_names
        require_gradients(objective_graph(task), OBJECTIVE, graph.weights, graph.origin, names, score)
    return runtime.new_step(task), data
