"""Run a training, from its start to a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..comparison.candidates import Candidate, Finished, FreshPull, KeptStart, Pull, Setting
from ..comparison.measures import Part
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
from ..training.loop import run_training
from ..training.monitor import Monitor
from ..training.optimisations.hoisting import Prefix, needs_hoisting, split_prefix
from ..training.progress import progress_bar
from ..training.settings import LoopSettings, Measured
from ..training.solvers.coordinates import Coordinates
from ..training.state import States, TrainingState, Unfinished, Weights
from ..training.time_limit import TimeLimit
from .callbacks import FitTask
from .fingerprint import Fingerprint
from .fitted_model import FittedModel
from .keep_better import keep_better
from .leaves.monotonic import with_monotonic_leaves
from .leaves.unseen_members import of_unseen_members
from .start import Start, with_anchor
from .validation import Validation
from .warm_starts import ESTIMATE, WarmStart, leaf_estimates, setting_of

__all__ = ["loss_of_start", "model_after", "new_step", "train", "train_without_step"]

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
    fingerprint_of: Callable[[Candidate | None], Callable[[], Fingerprint]] | None = None,
    resumed: TrainingState | None = None,
) -> FittedModel:
    """Return the trained model.

    ``fingerprint_of`` returns, for the chosen candidate of the warm start ``warm``, the function that returns
    the fingerprint of an unfinished training; ``resumed`` is the state of a training to resume.
    """
    candidate = None if warm is None else warm.known(configuration, start, validation)
    if warm is not None and isinstance(candidate, KeptStart | Finished):  # samples are not prepared
        if not configuration.is_default:  # a model's own loss has gradients
            _require_gradients(start, start.problem.task(start.data.sample_weight is not None))
        state = with_monotonic_leaves(start.problem, candidate.train(Setting(start.state), Part(start.data)))
        return _ended(model_after(configuration, start, None, state), warm.reason, task)
    start = _with_coordinates(configuration, start, resumed)
    step, data, prepare = prepared = new_step(configuration, start)
    if warm is not None and candidate is None:
        candidate = warm.chosen(configuration, start, prepared, settings, validation)
    estimates, is_solver = None, step.task.update.learning_rate.full_batch
    if candidate is None and not configuration.warm_start and not start.state.n_seen:
        estimates = leaf_estimates(configuration, start, step.task, data)
    if estimates is not None and configuration.updates.learning_rate is not None:
        weights = estimates.estimated(data, ESTIMATE.base, ESTIMATE.pooled)
        start, estimates = replace(start, state=start.state.with_weights(weights)), None
    fingerprint = None if fingerprint_of is None else fingerprint_of(candidate)
    kept = None if start.samples.is_remote else step
    unfinished = partial(model_after, configuration, start, kept, fingerprint=fingerprint)
    state = resumed or (start.state if is_solver else _initial_state(start, step))
    observer = None
    if task is not None:
        observer = task.observer("iteration" if is_solver else "epoch", state, unfinished)
    advice = partial(scale_advice, start.problem, start.features, start.data.X)
    settings, setting = replace(settings, advice=advice), Setting(start.state)
    if settings.deadline is not None:
        observer = TimeLimit(settings.deadline, observer)
    measure = None if validation is None else validation.measure
    hooks: dict[str, Any] = {"validate": measure, "observer": observer}
    try:
        if isinstance(candidate, KeptStart):
            state = candidate.train(setting, Part(data))
        elif is_solver or estimates is not None:  # estimates need no gradients
            growth = None if warm is None else warm.growth
            options = {"state": state, "estimates": estimates, **hooks}
            setting = setting_of(configuration, start, prepared, settings, growth, **options)
            is_own = start.from_model or FreshPull not in setting.centers
            of_leaves = None if estimates is None else ESTIMATE
            chosen = candidate or of_leaves or (Pull() if is_own else FreshPull())
            state = chosen.train(setting, Part(data))
        else:
            seed = state.seed if configuration.shuffle else None
            passes = start.samples.passes(prepare, data, seed, state.order_version)
            state = run_training(step, data, state, settings, passes=passes, **hooks)
    except Unfinished as ended:
        if fingerprint is not None and ended.state.has_updates:
            ended.model = unfinished(ended.state)
        raise
    reason = "" if warm is None else warm.reason
    if candidate is None and start.from_model and configuration.keep_better:
        state, reason = keep_better(configuration, start, state, validation, (step.task, data))
    state = with_monotonic_leaves(start.problem, state)
    model = model_after(configuration, start, kept, state)
    step.release()
    return _ended(model if candidate is None else candidate.completed(setting, model), reason, task)


def _ended(model: FittedModel, reason: str, task: FitTask | None) -> FittedModel:
    """Warn if the start was kept, for a reason; return the model."""
    if model.state.start_kept and reason:
        warn_user(START_KEPT.format(reason), StartKeptWarning, once=True)
    if task is not None:
        task.end(model)
    return model


def _initial_state(start: Start, step: Any) -> TrainingState:
    """Return the state with which a training on batches begins."""
    state = start.state
    states = reset_pending_averages(state.states, step.task.update.learning_rate)
    if state.coordinates is not None:
        if start.fresh is not None and not start.from_model:
            state = replace(state, updated=start.others(step.task)["fresh"])
        states = states or unit_lengths(step.task, state.points, start.label_moments()[1])
    return replace(state, states=states)


def model_after(
    configuration: Configuration,
    start: Start,
    step: Any,
    state: TrainingState,
    fingerprint: Callable[[], Fingerprint] | None = None,
) -> FittedModel:
    """Return the model in a state of its training, which is unfinished if it has a fingerprint."""
    n_epochs = state.n_iter - start.state.n_iter
    own = None if fingerprint is None else fingerprint()
    state = replace(state, n_seen=start.state.n_seen + n_epochs * start.n_samples, fingerprint=own)
    model = FittedModel(start.problem, start.features, state, step)
    model.open(configuration.runtime)
    return model


def _with_coordinates(configuration: Configuration, start: Start, resumed: TrainingState | None) -> Start:
    """Return the start in coordinates of standardised features, if the learning rate uses them."""
    if not start.problem.updates.in_units:
        return replace(start, state=start.state.in_coordinates(None))
    if resumed is not None and resumed.coordinates is not None:
        return replace(start, state=start.state.in_coordinates(resumed.coordinates))
    if start.state.coordinates is not None:
        return start
    task, prefix = _task(configuration, start)
    features = Preparation(task, prefix)
    shapes = {name: array.shape for name, array in start.weights.items()}
    data, measured = features(start.data), start.samples.measure(features)
    coordinates = Coordinates(task, data, shapes, of_features=True, measured=measured)
    return replace(start, state=start.state.in_coordinates(coordinates))


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


def _require_gradients(start: Start, task: TrainingTask) -> None:
    """Raise an error if a trained weight has no gradient."""
    graph, loss = task.graph, task.objective.loss
    if loss is None or not loss.in_python:
        score, names = None if loss is None else graph.output, start.problem.trainable.original_names
        require_gradients(objective_graph(task), OBJECTIVE, graph.learned, graph.origin, names, score)


def new_step(configuration: Configuration, start: Start) -> tuple[Any, Data, Preparation]:
    """Return the training step, the prepared samples, and the preparation of other samples."""
    task, prefix = _task(configuration, start)
    prepare = Preparation(task, prefix, start.state.coordinates)
    task = task if prepare.coordinates is None else prepare.coordinates.of_points(task)
    data = prepare(start.data)
    _require_gradients(start, task)
    step = start.samples.new_step(configuration.runtime, task, prepare)
    return step, data, prepare


def _task(configuration: Configuration, start: Start) -> tuple[TrainingTask, Prefix | None]:
    """Return the training task, and the frozen part of the graph if it is computed in advance."""
    runtime = configuration.runtime
    task = start.problem.task(start.data.sample_weight is not None, start.n_samples, start.state.n_seen)
    task = of_unseen_members(start.problem, with_anchor(task, start), start.data)
    if configuration.precompute or needs_hoisting(task):
        return split_prefix(task, start.data, runtime.device, runtime.n_jobs)
    return task, None


def train_without_step(
    configuration: Configuration,
    start: Start,
    settings: LoopSettings,
    validation: Validation | None,
    task: FitTask | None,
    update: Callable[[], tuple[float, Start, Any]],
) -> FittedModel:
    """Return the model after one epoch of a training that adds trees instead of updating weights.

    ``update`` returns a loss, the start of the model after the epoch, and the last samples of a stream.
    """
    found, window = start, None

    def after(state: TrainingState) -> FittedModel:
        state = replace(state, grown=found.state.grown, anchor=found.state.anchor)
        own = replace(start, problem=found.problem, features=found.features)
        model = model_after(configuration, own, None, state)
        model.window = window
        return model

    def validate(weights: Weights) -> Measured:
        assert validation is not None
        own = validation if found is start else validation.of_model(found.problem, found.features)
        return own.measure(weights)

    def read(copy: int | None) -> tuple[Weights, States]:
        return found.weights, {}

    is_stream, measure = settings.stream is not None, None if validation is None else validate
    observer = (
        None if task is None else task.observer("epoch" if is_stream else "iteration", start.state, after)
    )
    settings = replace(settings, validation_every=1, keeps_weights=not is_stream)
    with progress_bar(1, settings.description, bool(settings.verbose), settings.stream) as advance:
        monitor = Monitor(settings, start.state, read, measure, observer, advance)
        monitor.begin()
        loss, found, window = update()
        monitor.end(loss, None)
    model = after(monitor.finish())
    if task is not None:
        task.end(model)
    return model


def loss_of_start(configuration: Configuration, start: Start) -> tuple[float, Start, None]:
    """Return the mean loss of the starting weights, which an ensemble with added trees keeps."""
    data, model = start.data, start.problem.trainable.model
    runner = Inference(start.problem, model, configuration.runtime, fused=False)
    return runner.mean_loss(data.X, data.y, data.sample_weight), start, None
