"""Training: a configuration, samples and the last fitted model go in, a new fitted model comes out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, column_or_1d

from .. import conversion
from ..differentiation import require_gradients
from ..exceptions import StartKeptWarning, warn_user
from ..penalties.anchored import AnchoredPenalty
from ..training import Data, LoopSettings, TrainingResult, TrainingTask, hoist, make_session, run_training
from ..training.averaging import begin_later
from ..training.coordinates import Coordinates
from ..training.hoisting import needs_hoisting
from ..training.rescaling import unit_lengths
from ..training.solver_loop import run_full_batch, standardised_weights
from ..training.step_graphs import OBJECTIVE, objective_graph, penalty_graph
from .adaptation import Candidate, choose, folds
from .automatic import warn_of_terms_left_out
from .callbacks import EstimatorView, FitTask
from .class_weights import objective_weights
from .configuration import Configuration
from .data_errors import check_inputs_of_loss
from .fidelity import warn_of_differences
from .fitted_model import FittedModel
from .inference import Inference, LiveInference
from .input_validation import InputFeatures, matrix_of, read_before_fit, read_samples
from .partial_fit_classes import read_classes
from .problem import Problem
from .samples import Samples, check_lengths, hold_out
from .targets import one_class
from .training_state import TrainingState
from .validation import Validation

__all__ = ["Trainer", "draw_seed"]

#: Samples from which on some are held out, to know when to stop.
FEWEST_SAMPLES = 20
KEPT = (
    "Training did not make the model better, by samples that it was not trained on or else by its objective: "
    "it stays as it was (start_kept_ is True). Pass X_val and y_val to judge by other samples, or set "
    "keep_better=False to take the trained weights anyway."
)


@dataclass(frozen=True)
class Start:
    """What a training begins with.

    Attributes
    ----------
    problem, features, data, state : Problem, InputFeatures, Data, TrainingState
        What is trained, and on which samples.
    weights : dict of str to ndarray
        Starting weights.
    is_own : bool
        Whether these are a model's own, and none is drawn.
    fresh : dict of str to ndarray or None
        Weights that were drawn for standardised features, where the learning rate is automatic.
    """

    problem: Problem
    features: InputFeatures
    data: Data
    weights: dict[str, np.ndarray]
    state: TrainingState
    is_own: bool = False
    fresh: dict[str, np.ndarray] | None = None


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
            parts = hold_out(samples, configuration, random_state)
            samples, held_out = samples.take(parts[0]), samples.take(parts[1])
        task = self.view.begin_task("fit", samples, stopping.max_iter)
        start = self._begin(samples, random_state, seed, configuration.warm_start)
        settings = configuration.loop_settings(stopping.max_iter, (), stream=False)
        adapts = self._adapts(start)
        if not adapts and held_out is None and self._needs_validation(start):
            start, held_out = self._split(start, samples, random_state)
            if configuration.updates.learning_rate is None:
                settings = replace(settings, watch="validation_loss", validation_every=1, tol=0.0)
        validation = None if held_out is None else self._validation(start, held_out)
        held = self._candidate(start, settings, validation, random_state) if adapts else None
        return self._train(start, settings, validation, task, held)

    def _adapts(self, start: Start) -> bool:
        """Return whether training is held back towards the starting weights: those of a model, any rate."""
        problem = start.problem
        automatic = self.configuration.updates.learning_rate is None and problem.updates.is_solver
        return automatic and start.is_own and problem.loss is not None

    def _needs_validation(self, start: Start) -> bool:
        """Return whether samples are to be held out: they say when to stop, or which weights are better."""
        automatic = self.configuration.updates.learning_rate is None
        compared = start.is_own and self.configuration.keep_better
        enough = len(start.data) >= FEWEST_SAMPLES
        return start.problem.flexible and enough and (automatic or compared)

    def _split(
        self, start: Start, samples: Samples, random_state: np.random.RandomState
    ) -> tuple[Start, Samples]:
        """Hold samples out of a training."""
        kept, held_out = hold_out(samples, self.configuration, random_state)
        return replace(start, data=start.data.take(kept)), samples.take(held_out)

    def _candidate(
        self,
        start: Start,
        settings: LoopSettings,
        validation: Validation | None,
        random_state: np.random.RandomState,
    ) -> Candidate:
        """Return how a training from a model's own weights is to be held back."""
        problem, (step, data) = start.problem, self._new_step(start)
        runner = LiveInference(problem, problem.trainable.model, self.configuration.runtime)
        encoder = problem.encoder
        if validation is not None:
            parts = iter([(data, validation.data)])
        elif len(data) < 2:
            return Candidate(math.inf)
        else:
            numbers = folds(encoder.class_numbers(data.y), len(data), random_state)
            parts = ((data.take(kept), data.take(left_out)) for kept, left_out in numbers)

        def measure(weights: dict[str, np.ndarray], part: Data) -> np.ndarray:
            live, classes = runner.holding(weights), encoder.class_numbers(part.y)
            losses = live.losses(part.X, part.y)
            if classes is None:
                return np.stack([losses, np.zeros(len(losses))])
            return np.stack([losses, live.predict(part.X) != problem.targets.classes[classes]])

        found = choose(step, parts, start.weights, start.fresh, settings, measure)
        step.release()
        return found

    def partial_fit(self, samples: Samples, classes: Any, total_weight: float | None) -> FittedModel:
        """Return a model trained for one epoch more than the last one."""
        self.configuration.check_partial_fit(classes)
        random_state = check_random_state(self.configuration.random_state)
        expected = read_classes(classes, samples.y)
        task = self.view.begin_task("partial_fit", samples, 1)
        if self.last is None:
            if expected is not None:
                expected.check_labels(samples.y)
            seed = draw_seed(random_state)
            known = expected and expected.classes
            start = self._begin(samples, random_state, seed, False, known, True, total_weight)
        else:
            start = self._continue(samples, self.last, total_weight)
        if expected is not None:
            whose = "the model" if self.last is None else "the first call"
            expected.check_known(start.problem.targets.classes, whose)
        settings = self.configuration.loop_settings(1, start.state.train_losses, stream=True)
        return self._train(start, settings, None, task)

    def _begin(
        self,
        samples: Samples,
        random_state,
        seed: int,
        from_last: bool,
        classes: Any = None,
        stream: bool = False,
        total: float | None = None,
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
        n_samples = None if stream else rows.shape[0]
        warn_of_terms_left_out(self.configuration, problem.source)
        problem = problem.with_objective_of(self.configuration, y, samples.sample_weight, n_samples, total)
        data = _data(problem, rows, samples)
        warn_of_differences(problem, samples, rows, self.configuration.runtime)
        weights = self._starting_weights(problem, random_state, last)
        fresh = self._fresh_weights(problem, random_state)
        seen = problem.total_weight(y, samples.sample_weight)
        state = TrainingState(seed, total_weight=seen, penalty_weight=seen, anchor=weights)
        is_own = self.configuration.warm_start or not any(
            problem.trainable.weights[name].drawn for name in problem.trainable.trained
        )
        return Start(problem, features, data, weights, state, is_own and not stream, fresh)

    def _continue(self, samples: Samples, last: FittedModel, total_weight: float | None) -> Start:
        check_lengths(samples.X, samples.y)
        samples = samples.with_checked_weights()
        state = last.state.with_more(last.problem.total_weight(samples.y, samples.sample_weight))
        total = state.penalty_weight if total_weight is None else total_weight
        problem = last.problem.reconfigured(self.configuration, samples.y, samples.sample_weight, total)
        data = _data(problem, read_samples(problem, samples.X, last.features), samples)
        return Start(problem, last.features, data, last.next_weights(problem.trainable.trained), state)

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

    def _fresh_weights(self, problem: Problem, random_state) -> dict[str, np.ndarray] | None:
        """Return fresh weights for standardised features, zero for linear models; None if none is drawn."""
        trainable, weights = problem.trainable, problem.trainable.weights
        if self.configuration.updates.learning_rate is not None:
            return None
        if not any(weights[name].drawn for name in trainable.trained):
            return None
        own = trainable.initial_weights()
        found = conversion.draw_weights(own, weights, random_state, trainable.constraints)
        if problem.flexible:
            return found
        return {
            n: np.zeros_like(a) if weights[n].drawn and n not in trainable.constraints else a
            for n, a in found.items()
        }

    def _train(
        self,
        start: Start,
        settings: LoopSettings,
        validation: Validation | None,
        task: FitTask | None,
        held: Candidate | None = None,
    ) -> FittedModel:
        """Train, held back where that was chosen."""
        start = self._in_coordinates(start)
        step, data = self._new_step(start)
        coordinates = start.state.coordinates
        learning_rate, validate, observer = step.task.update.learning_rate, None, None
        model_after = partial(self._model_after, start, step)
        if validation is not None:
            validate = validation.measure
        if task is not None:
            name = "iteration" if learning_rate.full_batch else "epoch"
            observer = task.observer(name, start.state.history, model_after)
        weights, states = start.weights, begin_later(start.state.states, learning_rate)
        if coordinates is not None:
            own = start.fresh is None or start.is_own
            weights = coordinates.as_points(weights) if own else start.fresh or {}
            states = states or unit_lengths(step.task, weights, start.problem.label_scale(data.y))
        if held is not None and math.isinf(held.pull):
            result = TrainingResult.of_start(weights)
        elif learning_rate.full_batch:
            if start.fresh is not None and (held is None or held.fresh):
                weights = standardised_weights(step, data, start.fresh)
            pull = 0.0 if held is None else held.pull
            result = run_full_batch(step, data, weights, settings, validate, observer, pull=pull)
        else:
            result = run_training(
                step,
                data,
                weights,
                settings,
                start.state.seed,
                states=states,
                validate=validate,
                observer=observer,
                convert=None if coordinates is None else coordinates.as_weights,
            )
        if held is None and start.is_own and self.configuration.keep_better:
            self._keep_better(start, result, validation)
        if result.start_kept:
            warn_user(KEPT, StartKeptWarning)
        model = model_after(result)
        step.release()
        if task is not None:
            task.end(model)
        return model

    def _keep_better(self, start: Start, result: TrainingResult, validation: Validation | None) -> None:
        """Go back to the starting weights where training did not make the model better."""
        problem, runtime = start.problem, self.configuration.runtime
        runner = LiveInference(problem, problem.trainable.model, runtime)
        data = start.data if validation is None else validation.data

        def value(weights: dict[str, np.ndarray]) -> float:
            loss = runner.holding(weights).mean_loss(data.X, data.y, data.sample_weight)
            return loss if validation is not None else loss + self._penalty(problem, weights)

        if not value(result.weights) < value(start.weights):
            result.go_back_to(start.weights)

    def _penalty(self, problem: Problem, weights: dict[str, np.ndarray]) -> float:
        """Return the penalty of weights."""
        graph = penalty_graph(problem.task(False))
        if graph is None:
            return 0.0
        runtime = self.configuration.runtime
        return float(make_session(graph, runtime.device, runtime.n_jobs).run(None, weights)[0])

    def _model_after(self, start: Start, step: Any, result: TrainingResult) -> FittedModel:
        """Return the model that a training leaves."""
        trained = start.problem.trainable.with_stable_weights(result.weights)
        state = start.state.after(result, len(start.data))
        inference = Inference(start.problem, trained, self.configuration.runtime)
        return FittedModel(start.problem, start.features, trained, state, step, inference)

    def _in_coordinates(self, start: Start) -> Start:
        """Return a training in coordinates of its features where the learning rate is chosen for them."""
        if not start.problem.updates.in_units:
            return replace(start, state=replace(start.state, coordinates=None))
        if start.state.coordinates is not None:
            return start
        task, data = self._task(start)
        shapes = {name: array.shape for name, array in start.weights.items()}
        coordinates = Coordinates(task, data, shapes, of_features=True)
        return replace(start, state=replace(start.state, coordinates=coordinates))

    def _new_step(self, start: Start) -> tuple[Any, Data]:
        """Return the training step, and the samples as it takes them."""
        task, data = self._task(start)
        if start.state.coordinates is not None:
            task, data = start.state.coordinates.standardised(task, data)
        graph, loss = task.graph, task.objective.loss
        if loss is None or not loss.in_python:
            score, names = None if loss is None else graph.output, start.problem.trainable.original_names
            require_gradients(objective_graph(task), OBJECTIVE, graph.weights, graph.origin, names, score)
        return self.configuration.runtime.new_step(task), data

    def _task(self, start: Start) -> tuple[TrainingTask, Data]:
        """Return what is trained, and the samples, the frozen part of the graph computed."""
        problem, data, runtime = start.problem, start.data, self.configuration.runtime
        task = problem.task(data.sample_weight is not None, len(data), start.state.n_seen)
        penalty, anchor = task.objective.penalty, start.state.anchor
        if anchor is not None and any(part.toward == "start" for part in penalty.parts()):
            task = task.changed(penalty=AnchoredPenalty(penalty, anchor))
        if self.configuration.hoist or needs_hoisting(task):
            task, data = hoist(task, data, runtime.device, runtime.n_jobs)
        return task, data


def draw_seed(random_state: np.random.RandomState) -> int:
    """Return the seed of the orders of a training's samples, from 0 to 2**63 - 1."""
    return int(random_state.randint(np.iinfo(np.int64).max, dtype=np.int64))


def _data(problem: Problem, rows: Any, samples: Samples) -> Data:
    """Return samples, labels and weights as the graph takes them."""
    n_samples = rows.shape[0]
    labels = problem.encoder.encode(samples.y, n_samples)
    weights = samples.with_checked_weights().sample_weight
    return Data(rows, labels, objective_weights(problem, samples.y, weights, n_samples))
