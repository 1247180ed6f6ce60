"""Run a training, from its start to a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..comparison.candidates import Candidate, FreshPull, Pull, Setting
from ..comparison.measures import Part
from ..data.orders import ORDER_VERSION
from ..data.samples import Data
from ..differentiation import require_gradients
from ..exceptions import StartKeptWarning, warn_user
from ..inference.running import Inference
from ..problem.configuration import Configuration
from ..problem.feature_scales import scale_advice
from ..training.graphs.averaging import reset_pending_averages
from ..training.graphs.names import OBJECTIVE
from ..training.graphs.objective import objective_graph
from ..training.graphs.rescaling import unit_lengths
from ..training.graphs.task import TrainingTask
from ..training.loop import LoopSettings, TrainingResult, run_training
from ..training.optimisations.hoisting import Prefix, needs_hoisting, split_prefix
from ..training.positions import Interrupted, Position, ReadingFailed
from ..training.solvers.coordinates import Coordinates
from ..training.solvers.full_batch import FullBatchStep
from .callbacks import FitTask
from .fitted_model import FittedModel
from .keep_better import keep_better
from .leaves.unseen_members import of_unseen_members
from .resumption import Resumption
from .start import Start, with_anchor
from .validation import Validation
from .warm_starts import WarmStart, setting_of

__all__ = ["model_after", "new_step", "train"]

START_KEPT = (
    "Training did not improve the model, and the starting weights are kept (start_kept_ is True): {}. "
    "Pass X_val and y_val to compare by other samples, or set keep_better=False to keep the trained weights "
    "anyway."
)


def train(
    configuration: Configuration,
    start: Start,
    settings: LoopSettings,
    validation: Validation | None = None,
    task: FitTask | None = None,
    warm: WarmStart | None = None,
    resumption_of: Callable[[Candidate | None], Callable[[Position], Resumption]] | None = None,
    position: Position | None = None,
) -> FittedModel:
    """Return the trained model.

    ``resumption_of`` returns, for the chosen candidate of the warm start ``warm``, the function that returns
    the state to resume at a position; a resumed training begins at ``position``.
    """
    start = _with_coordinates(configuration, start)
    step, data, prepare = new_step(configuration, start)
    candidate = None
    if warm is not None:
        candidate = warm.chosen(configuration, start, (step, data, prepare), settings, validation)
    resumption_at = None if resumption_of is None else resumption_of(candidate)
    after = partial(model_after, configuration, start, step, resumption_at)
    observer = None
    if task is not None:
        name = "iteration" if step.task.update.learning_rate.full_batch else "epoch"
        resumed = [] if position is None else position.history
        observer = task.observer(name, start.state.history, after, resumed)
    advice = partial(scale_advice, start.problem, start.features, start.data.X)
    hooks: dict[str, Any] = {
        "validate": None if validation is None else validation.measure,
        "observer": observer,
        "position": position,
    }
    if start.source is not None:
        version = ORDER_VERSION if position is None else position.order_version
        seed = start.state.seed if configuration.shuffle else None
        passes = start.source.passes(prepare, seed, version)
        hooks |= {} if passes is None else {"passes": passes}
    settings, setting = replace(settings, advice=advice), Setting(start.weights)
    try:
        if step.task.update.learning_rate.full_batch:
            growth = None if warm is None else warm.growth
            setting = setting_of(configuration, start, (step, data), settings, growth, **hooks)
            is_own = start.from_model or FreshPull not in setting.centers
            chosen = candidate or (Pull() if is_own else FreshPull())
            result = chosen.train(setting, Part(data))
        else:
            result = _train_on_batches(start, step, data, settings, hooks)
    except (Interrupted, ReadingFailed) as ended:
        if resumption_at is not None and ended.snapshot.position.has_updates:
            ended.model = after(TrainingResult.of_snapshot(ended.snapshot))
        raise
    reason = "held-out samples do not show an improvement, or none can be held out"
    if candidate is None and start.from_model and configuration.keep_better:
        reason = keep_better(configuration, start, result, validation, (step.task, data))
    model = after(result) if candidate is None else candidate.completed(setting, after(result))
    if model.state.start_kept:
        warn_user(START_KEPT.format(reason), StartKeptWarning)
    step.release()
    if task is not None:
        task.end(model)
    return model


def _train_on_batches(
    start: Start, step: Any, data: Data, settings: LoopSettings, hooks: dict[str, Any]
) -> TrainingResult:
    """Train on batches, in coordinates of standardised features if the learning rate uses them."""
    states = reset_pending_averages(start.state.states, step.task.update.learning_rate)
    weights, coordinates = start.weights, start.state.coordinates
    if coordinates is not None:
        own = start.fresh is None or start.from_model
        weights = coordinates.as_points(weights) if own else start.others(step.task)["fresh"]
        states = states or unit_lengths(step.task, weights, start.label_moments()[1])
        hooks["convert"] = coordinates.as_weights
    return run_training(step, data, weights, settings, start.state.seed, states=states, **hooks)


def model_after(
    configuration: Configuration,
    start: Start,
    step: Any,
    resumption_at: Callable[[Position], Resumption] | None,
    result: TrainingResult,
) -> FittedModel:
    """Return the model with the result of a training, which may be unfinished."""
    resumption = None
    if result.position is not None and resumption_at is not None:
        resumption = resumption_at(result.position)
    trained = start.problem.trainable.with_stable_weights(result.weights)
    state = start.state.after(result, start.n_samples)
    inference = Inference(start.problem, trained, configuration.runtime)
    return FittedModel(start.problem, start.features, trained, state, step, inference, resumption)


def _with_coordinates(configuration: Configuration, start: Start) -> Start:
    """Return the start with coordinates of standardised features, if the learning rate uses them."""
    if not start.problem.updates.in_units:
        return replace(start, state=replace(start.state, coordinates=None))
    if start.state.coordinates is not None:
        return start
    task, prefix = _task(configuration, start)
    features = Preparation(task, prefix)
    shapes = {name: array.shape for name, array in start.weights.items()}
    data, measured = features(start.data), None
    if start.source is not None:
        measured = start.source.measure(features)
    coordinates = Coordinates(task, data, shapes, of_features=True, measured=measured)
    return replace(start, state=replace(start.state, coordinates=coordinates))


@dataclass(frozen=True)
class Preparation:
    """Preparation of samples: compute the frozen part of the graph, and standardise features."""

    task: TrainingTask  # task without the frozen part
    prefix: Prefix | None  # frozen part
    coordinates: Coordinates | None = None  # coordinates in which features are standardised

    def __call__(self, data: Data) -> Data:
        data = data if self.prefix is None else self.prefix.apply(data)
        return data if self.coordinates is None else self.coordinates.standardised_data(self.task, data)

    def features(self, data: Data) -> dict[str, Any]:
        """Return the features of samples by the name of their input."""
        return self.task.inputs(self(data))


def new_step(configuration: Configuration, start: Start) -> tuple[Any, Data, Preparation]:
    """Return the training step, the prepared samples, and the preparation of other samples."""
    task, prefix = _task(configuration, start)
    prepare = Preparation(task, prefix, start.state.coordinates)
    task = task if prepare.coordinates is None else prepare.coordinates.of_points(task)
    data = prepare(start.data)
    graph, loss = task.graph, task.objective.loss
    if loss is None or not loss.in_python:
        score, names = None if loss is None else graph.output, start.problem.trainable.original_names
        require_gradients(objective_graph(task), OBJECTIVE, graph.learned, graph.origin, names, score)
    step = configuration.runtime.new_step(task)
    if isinstance(step, FullBatchStep):
        step.label_spread = start.label_moments()[1]
    return step, data, prepare


def _task(configuration: Configuration, start: Start) -> tuple[TrainingTask, Prefix | None]:
    """Return the training task, and the frozen part of the graph if it is computed in advance."""
    runtime = configuration.runtime
    task = start.problem.task(start.data.sample_weight is not None, start.n_samples, start.state.n_seen)
    task = of_unseen_members(start.problem, with_anchor(task, start), start.data)
    if configuration.hoist or needs_hoisting(task):
        return split_prefix(task, start.data, runtime.device, runtime.n_jobs)
    return task, None
