"""Training: a configuration, samples and the last fitted model go in, a new fitted model comes out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
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
from .data_errors import check_inputs_of_loss
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

__all__ = ["Trainer", "draw_seed"]


@dataclass(frozen=True)
class Start:
    """What a training begins with."""

    problem: Problem
    features: InputFeatures
    data: Data
    weights: dict[str, np.ndarray]
    state: TrainingState


@dataclass(frozen=True)
class Trainer:
    """A call of ``fit`` or ``partial_fit``.

    Attributes
    ----------
    configuration : Configuration
        What to train, and how.
    last : FittedModel or None
        Last fitted model: ``partial_fit`` and warm starts begin with its weights.
    view : EstimatorView
        The estimator in training, for callbacks and scorers.
    """

    configuration: Configuration
    last: FittedModel | None
    view: EstimatorView

    def fit(self, samples: Samples, held_out: Samples | None) -> FittedModel:
        """Return a model trained for ``max_iter`` epochs; ``early_stopping`` may hold samples out."""
        configuration, stopping = self.configuration, self.configuration.stopping
        configuration.check_fit()
        random_state = check_random_state(configuration.random_state)
        seed = draw_seed(random_state)
        if stopping.early_stopping and held_out is None:
            samples, held_out = hold_out(samples, configuration, random_state)
        task = self.view.begin_task("fit", samples, stopping.max_iter)
        start = self._begin(samples, random_state, seed, configuration.warm_start)
        validation = None if held_out is None else self._validation(start, held_out)
        settings = configuration.loop_settings(stopping.max_iter, (), stream=False)
        return self._train(start, settings, validation, task)

    def partial_fit(self, samples: Samples, classes: Any) -> FittedModel:
        """Return a model trained for one epoch more than the last one."""
        self.configuration.check_partial_fit(classes)
        random_state = check_random_state(self.configuration.random_state)
        expected = read_classes(classes, samples.y)
        task = self.view.begin_task("partial_fit", samples, 1)
        if self.last is None:
            if expected is not None:
                expected.check_labels(samples.y)
            seed = draw_seed(random_state)
            start = self._begin(samples, random_state, seed, False, expected and expected.classes)
        else:
            start = self._continue(samples, self.last)
        if expected is not None:
            whose = "the model" if self.last is None else "the first call"
            expected.check_known(start.problem.targets.classes, whose)
        settings = self.configuration.loop_settings(1, start.state.train_losses, stream=True)
        return self._train(start, settings, None, task)

    def _begin(
        self, samples: Samples, random_state, seed: int, from_last: bool, classes: Any = None
    ) -> Start:
        """Convert the model and check the samples."""
        X, y, name, last = samples.X, samples.y, self.configuration.name, self.last if from_last else None
        check_lengths(X, y)
        self._check_order_of_features(X, last)
        rows = features = None
        if not conversion.is_onnx_source(self.configuration.source):
            features = InputFeatures.of(X, name)
            rows = self._check_before_fit(samples, features, classes)
            samples = samples.with_checked_weights()
        problem = Problem.of(self.configuration, X, y, samples.sample_weight, random_state, classes)
        self._warn_of_one_column(problem, y)
        own, names = problem.trainable.own_loss, InputFeatures.of(X, name).names
        if own is not None and names is not None:
            inputs = problem.trainable.entry.schema.types()
            check_inputs_of_loss(own, inputs, names.tolist(), samples.sample_weight is not None)
        features = features or InputFeatures.of(matrix_of(problem, X), name)
        rows = read_samples(problem, X, features, rows)
        if problem.source is None and problem.trainable.head is not None:
            # Scores of other numbers of samples would be broadcast to the labels without a word.
            Inference(problem, problem.trainable.model, self.configuration.runtime).decision_function(
                rows[:3]
            )
        samples = samples.with_checked_weights()
        problem = problem.with_class_weights(self.configuration.class_weight, y, samples.sample_weight)
        data = _data(problem, rows, samples)
        warn_of_differences(problem, samples, rows, self.configuration.runtime)
        weights = self._starting_weights(problem, random_state, last)
        return Start(problem, features, data, weights, TrainingState(seed))

    def _continue(self, samples: Samples, last: FittedModel) -> Start:
        problem = last.problem.reconfigured(self.configuration, samples.y)
        check_lengths(samples.X, samples.y)
        data = _data(problem, read_samples(problem, samples.X, last.features), samples)
        return Start(problem, last.features, data, last.next_weights(problem.trainable.trained), last.state)

    def _check_order_of_features(self, X: Any, last: FittedModel | None) -> None:
        """Check that training goes on with the columns it began with, by name and in their order."""
        source = self.configuration.source
        if not conversion.is_onnx_source(source) and conversion.is_fitted(source):
            conversion.check_feature_names(source, X)
        elif last is not None and not last.problem.trainable.entry.selects_by_name:
            last.features.check_order(X)

    def _check_before_fit(self, samples: Samples, features: InputFeatures, classes: Any) -> Any:
        """Check samples before a scikit-learn model is fitted on them; return them where they are numbers."""
        configuration, y = self.configuration, samples.y
        source, dtype = configuration.source, np.dtype(configuration.conversion.dtype)
        rows = read_before_fit(samples.X, features, source, dtype)
        if classes is None and y is not None and not conversion.is_fitted(source):
            one = one_class(y)
            if one is not None and configuration.estimator_type == "classifier":
                raise ValueError(
                    f"A classifier needs samples of at least 2 classes, y has 1 class: [{one!r}]."
                )
        return rows

    def _warn_of_one_column(self, problem: Problem, y: Any) -> None:
        """Warn, as scikit-learn does, of y with one column for a regressor of one output."""
        head = problem.trainable.head
        if head is None or head.task != "regression" or problem.source is None:
            return
        if problem.targets.ndim == 2 and head.n_outputs == 1 and not self.configuration.multi_output:
            column_or_1d(y, warn=True)

    def _validation(self, start: Start, samples: Samples) -> Validation:
        problem = start.problem
        if problem.needs_labels and samples.y is None:
            raise ValueError("X_val and y_val go together: pass both or none.")
        samples = samples.with_checked_weights()
        check_lengths(samples.X, samples.y)
        data = _data(problem, read_samples(problem, samples.X, start.features), samples)
        return Validation(self.configuration, problem, start.features, samples, data, self.view.with_model)

    def _starting_weights(self, problem: Problem, random_state, last: FittedModel | None) -> dict:
        """Return fresh weights, or for a warm start those of the last solution or of the model."""
        trainable = problem.trainable
        own = trainable.initial_weights()
        if not self.configuration.warm_start:
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
        self,
        start: Start,
        settings: LoopSettings,
        validation: Validation | None,
        task: FitTask | None,
    ) -> FittedModel:
        step, data = self._new_step(start)
        learning_rate, validate, observer = step.task.update.learning_rate, None, None
        model_after = partial(self._model_after, start, step)
        if validation is not None:
            validate = validation.measure
        if task is not None:
            name = "iteration" if learning_rate.full_batch else "epoch"
            observer = task.observer(name, start.state.history, model_after)
        weights, states = start.weights, begin_later(start.state.states, learning_rate)
        result = run_training(
            step,
            data,
            weights,
            settings,
            start.state.seed,
            states=states,
            validate=validate,
            observer=observer,
        )
        model = model_after(result)
        step.release()
        if task is not None:
            task.end(model)
        return model

    def _model_after(self, start: Start, step: Any, result: TrainingResult) -> FittedModel:
        """Return the model that a training leaves."""
        trained = start.problem.trainable.with_stable_weights(result.weights)
        state = start.state.after(result, len(start.data))
        inference = Inference(start.problem, trained, self.configuration.runtime)
        return FittedModel(start.problem, start.features, trained, state, step, inference)

    def _new_step(self, start: Start) -> tuple[Any, Data]:
        """Return the training step, and the samples as it takes them."""
        problem, data, runtime = start.problem, start.data, self.configuration.runtime
        task = problem.task(data.sample_weight is not None, len(data), start.state.n_seen)
        if self.configuration.hoist or needs_hoisting(task):
            task, data = hoist(task, data, runtime.device, runtime.n_jobs)
        graph, loss = task.graph, task.objective.loss
        if loss is None or not loss.in_python:
            score, names = None if loss is None else graph.output, problem.trainable.original_names
            require_gradients(objective_graph(task), OBJECTIVE, graph.weights, graph.origin, names, score)
        return runtime.new_step(task), data


def draw_seed(random_state: np.random.RandomState) -> int:
    """Return the seed of the orders of a training's samples, from 0 to 2**63 - 1."""
    return int(random_state.randint(np.iinfo(np.int64).max, dtype=np.int64))


def _data(problem: Problem, rows: Any, samples: Samples) -> Data:
    """Return samples, labels and weights as the graph takes them."""
    n_samples = rows.shape[0]
    labels = problem.encoder.encode(samples.y, n_samples)
    weights = samples.with_checked_weights().sample_weight
    return Data(rows, labels, objective_weights(problem, samples.y, weights, n_samples))
