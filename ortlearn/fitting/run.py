"""Run a training, from its start to a fitted model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..comparison.adaptation import Candidate, standard_error, weights_of
from ..data.orders import ORDER_VERSION
from ..data.samples import Data
from ..differentiation import require_gradients
from ..exceptions import StartKeptWarning, warn_user
from ..inference.running import Inference, LiveInference
from ..learning_rates import LearningRateLBFGS
from ..penalties.anchored import AnchoredPenalty
from ..problem.configuration import Configuration
from ..problem.feature_scales import scale_advice
from ..runtime.checked_sessions import open_session
from ..training.graphs.averaging import reset_pending_averages
from ..training.graphs.names import OBJECTIVE
from ..training.graphs.objective import objective_graph, penalty_graph
from ..training.graphs.rescaling import unit_lengths
from ..training.graphs.task import TrainingTask
from ..training.loop import LoopSettings, TrainingResult, run_training
from ..training.optimisations.hoisting import Prefix, needs_hoisting, split_prefix
from ..training.positions import Interrupted, Position, ReadingFailed
from ..training.solver_loop import run_full_batch
from ..training.solvers.coordinates import Coordinates
from ..training.solvers.full_batch import FullBatchStep
from .callbacks import FitTask
from .centers import centers
from .fitted_model import FittedModel
from .leaf_shares import LeafShares
from .resumption import Resumption
from .start import Start
from .validation import Validation

__all__ = ["model_after", "new_step", "train", "with_anchor"]

START_KEPT = (
    "Training did not improve the model, and the starting weights are kept (start_kept_ is True): {}. "
    "Pass X_val and y_val to compare by other samples, or set keep_better=False to keep the trained weights "
    "anyway."
)
#: Standard errors by which the loss of held-out samples must increase to undo training with a chosen rate.
EVIDENCE = 2.0


def train(
    configuration: Configuration,
    start: Start,
    settings: LoopSettings,
    validation: Validation | None = None,
    task: FitTask | None = None,
    candidate: Candidate | None = None,
    resumption_at: Callable[[Position], Resumption] | None = None,
    position: Position | None = None,
    grow: Callable[[FittedModel, float], FittedModel] | None = None,
) -> FittedModel:
    """Return the trained model.

    ``candidate`` is the regularisation of a warm start, if one was chosen. ``resumption_at`` returns the
    state to resume the training at a position, and ``position`` is the one to start at if it is resumed.
    ``grow`` adds new trees with a share of the scores to the model.
    """
    start = _with_coordinates(configuration, start)
    step, data, prepare = new_step(configuration, start)
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
    if candidate is not None and math.isinf(candidate.pull):
        result = TrainingResult.of_start(start.weights)
    elif candidate is not None and candidate.center == "shares":
        shares = LeafShares.of(configuration, start.problem, step.task, data)
        assert shares is not None
        weights = shares.averaged(start.weights, data, candidate.pull)
        result = TrainingResult(weights, {}, weights)
    else:
        settings = replace(settings, advice=advice)
        try:
            result = _run(configuration, start, step, data, settings, candidate, hooks)
        except (Interrupted, ReadingFailed) as ended:
            if resumption_at is not None and ended.snapshot.position.has_updates:
                ended.model = after(TrainingResult.of_snapshot(ended.snapshot))
            raise
    reason = "held-out samples do not show an improvement, or none can be held out"
    if candidate is None and start.from_model and configuration.keep_better:
        reason = _keep_better(configuration, start, result, validation, (step.task, data))
    model, share = after(result), 0.0 if candidate is None else candidate.share
    if share and grow is not None:
        model = grow(model, share)
    elif result.start_kept:
        warn_user(START_KEPT.format(reason), StartKeptWarning)
    step.release()
    if task is not None:
        task.end(model)
    return model


def _run(
    configuration: Configuration,
    start: Start,
    step: Any,
    data: Data,
    settings: LoopSettings,
    candidate: Candidate | None,
    hooks: dict[str, Any],
) -> TrainingResult:
    """Train on all samples at once, or on batches."""
    learning_rate, weights = step.task.update.learning_rate, start.weights
    if learning_rate.full_batch:
        others = centers(configuration, start, step)
        center = ("start" if start.from_model else "fresh") if candidate is None else candidate.center
        if center in others:
            weights = others[center](data)
        pull = 0.0 if candidate is None else candidate.pull
        return run_full_batch(step, data, weights, settings, **hooks, pull=pull)
    states, coordinates = reset_pending_averages(start.state.states, learning_rate), start.state.coordinates
    if coordinates is not None:
        own = start.fresh is None or start.from_model
        weights = coordinates.as_points(weights) if own else start.others(step.task)["fresh"]
        states = states or unit_lengths(step.task, weights, start.label_moments()[1])
        hooks["convert"] = coordinates.as_weights
    return run_training(step, data, weights, settings, start.state.seed, states=states, **hooks)


def _keep_better(
    configuration: Configuration,
    start: Start,
    result: TrainingResult,
    validation: Validation | None,
    trained: tuple[TrainingTask, Data],
) -> str:
    """Restore the starting weights if training did not improve the model; return the reason.

    Sparse features, such as those of texts, are not computed again.
    """
    problem, runtime = start.problem, configuration.runtime
    loss, penalised = problem.loss, with_anchor(problem.task(False), start)
    in_onnx = loss is not None and not loss.in_python
    in_memory = validation is None and start.source is None and not trained[0].graph.statistics
    if in_memory and trained[1].is_sparse and in_onnx and penalised.objective.penalty.smooth:
        task = trained[0].changed(learning_rate=LearningRateLBFGS())
        judge: Any = runtime.new_step(task)
        judge.start(trained[1], start.weights)
        before, after = (judge.evaluate(judge.pack(w))[0] for w in (start.weights, result.weights))
        if not after < before:
            result.go_back_to(start.weights)
        return f"the training objective is {before:.4g} before and {after:.4g} after training"
    runner = LiveInference(problem, problem.trainable.model, runtime)
    penalty = None if validation is not None else penalty_graph(penalised)
    session = None if penalty is None else open_session(penalty, runtime.device, runtime.n_jobs)

    def value(weights: dict[str, np.ndarray]) -> float:
        if validation is not None:
            return validation.loss(weights)
        live, data = runner.with_weights(weights), start.data
        if start.source is not None:
            loss = start.source.mean_loss(live)
        else:
            loss = live.mean_loss(data.X, data.y, data.sample_weight)
        return loss if session is None else loss + float(session.run(None, weights)[0])

    before, after = value(start.weights), value(result.weights)
    if not after < before and not _is_undecided(configuration, start, result, validation, runner):
        result.go_back_to(start.weights)
    if validation is None:
        return f"the training objective is {before:.4g} before and {after:.4g} after training"
    n_samples = validation.data.X.shape[0] if isinstance(validation, Validation) else "the"
    return f"the loss of {n_samples} held-out samples is {before:.4g} before and {after:.4g} after training"


def _is_undecided(
    configuration: Configuration,
    start: Start,
    result: TrainingResult,
    validation: Validation | None,
    runner: LiveInference,
) -> bool:
    """Return whether held-out samples do not show that training with a chosen learning rate did harm.

    Their loss may increase by up to two standard errors if that of the training samples decreases, since few
    samples can be held out of few.
    """
    is_chosen = configuration.updates.learning_rate is not None and start.source is None
    if not is_chosen or not isinstance(validation, Validation) or start.problem.loss is None:
        return False
    old, new = validation.losses(start.weights), validation.losses(result.weights)
    if old is None or new is None or not np.isfinite(new).all():
        return False
    weights = weights_of(validation.data)
    increase, share = new - old, weights / weights.sum()
    if not share @ increase < EVIDENCE * standard_error(increase, share):
        return False
    data = start.data
    before, after = (
        runner.with_weights(own).mean_loss(data.X, data.y, data.sample_weight)
        for own in (start.weights, result.weights)
    )
    return after < before


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
    """Preparation of samples: compute the frozen part of the graph, and standardise features.

    Attributes
    ----------
    task : TrainingTask
        Task without the frozen part.
    prefix : Prefix or None
        Frozen part.
    coordinates : Coordinates or None
        Coordinates in which features are standardised.
    """

    task: TrainingTask
    prefix: Prefix | None
    coordinates: Coordinates | None = None

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
    task = with_anchor(task, start)
    if configuration.hoist or needs_hoisting(task):
        return split_prefix(task, start.data, runtime.device, runtime.n_jobs)
    return task, None


def with_anchor(task: TrainingTask, start: Start) -> TrainingTask:
    """Return the task with starting weights for penalties with ``toward="start"``."""
    penalty, anchor = task.objective.penalty, start.state.anchor
    if anchor is None or all(part.toward == "zero" for part in penalty.parts()):
        return task
    return task.changed(penalty=AnchoredPenalty(penalty, anchor))
