"""Compare a finished training with its start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..comparison.candidates import Candidate, Finished, KeptStart, Setting, Undecided
from ..comparison.evidence import Choice, choose
from ..comparison.measures import Losses, Measure, Part, Weights
from ..data.samples import Data
from ..inference.running import LiveInference
from ..inference.score_runner import ScoreRunner
from ..learning_rates import LearningRateLBFGS
from ..problem.configuration import Configuration
from ..runtime.checked_sessions import open_session
from ..training.graphs.objective import penalty_graph
from ..training.graphs.task import TrainingTask
from ..training.state import TrainingState
from .leaves.unseen_members import of_unseen_members
from .start import Start, with_anchor
from .validation import Validation

__all__ = ["keep_better"]


def keep_better(
    configuration: Configuration,
    start: Start,
    state: TrainingState,
    validation: Validation | None,
    trained: tuple[TrainingTask, Data],
) -> tuple[TrainingState, str]:
    """Return the state, with the starting weights if training did not improve the model, and the reason."""
    text = "the training objective"
    value = _objective(configuration, start, trained) if validation is None else validation.loss
    if validation is not None:
        n_samples = validation.data.X.shape[0] if isinstance(validation, Validation) else "the"
        text = f"the loss of {n_samples} held-out samples"
    choice = _compared(start, Losses(value), Finished(state))
    (before, after), keeps_start = choice.means, isinstance(choice.candidate, KeptStart)
    if keeps_start and not _is_undecided(configuration, start, state, validation):
        state = state.back_to(start.weights)
    return state, f"{text} is {before:.4g} before and {after:.4g} after training"


def _compared(start: Start, measure: Measure, candidate: Candidate) -> Choice:
    """Return the choice between the start and a candidate."""
    return choose(Setting(start.state), measure, [[candidate]])


def _is_undecided(
    configuration: Configuration, start: Start, state: TrainingState, validation: Validation | None
) -> bool:
    """Return whether held-out samples do not show that training with a chosen learning rate did harm.

    Few samples can be held out of few; the loss of the training samples must decrease.
    """
    is_chosen = configuration.updates.learning_rate is not None and start.source is None
    if not is_chosen or not isinstance(validation, Validation) or validation.losses(start.weights) is None:
        return False
    held_out = Losses(validation.losses, Part(validation.data))
    if isinstance(_compared(start, held_out, Undecided(state)).candidate, KeptStart):
        return False
    loss = Losses(_mean_loss(configuration, start))
    return not isinstance(_compared(start, loss, Finished(state)).candidate, KeptStart)


def _mean_loss(configuration: Configuration, start: Start) -> Callable[[Weights], float]:
    """Return the function of weights that computes the mean loss of all samples."""
    problem, data = start.problem, start.data
    if data.members is not None:
        unseen = ScoreRunner(of_unseen_members(problem, problem.task(False), data), configuration.runtime)
        return lambda weights: float(
            np.average(unseen.losses(unseen.scores(weights, data), data), weights=data.sample_weight)
        )
    runner = LiveInference(problem, problem.trainable.model, configuration.runtime)
    return lambda weights: start.samples.mean_loss(runner.with_weights(weights))


def _objective(
    configuration: Configuration, start: Start, trained: tuple[TrainingTask, Data]
) -> Callable[[Weights], float]:
    """Return the function of weights that computes the objective of all samples.

    Sparse features, such as those of texts, are not computed again.
    """
    runtime, (task, data), loss = configuration.runtime, trained, start.problem.loss
    penalised = with_anchor(start.problem.task(False), start)
    in_onnx = loss is not None and not loss.in_python
    in_memory = start.source is None and not task.graph.statistics
    if in_memory and data.is_sparse and in_onnx and penalised.objective.penalty.smooth:
        judge: Any = runtime.new_step(task.changed(learning_rate=LearningRateLBFGS()))
        judge.start(data, start.weights)
        return lambda weights: float(judge.evaluate(judge.pack(weights))[0])
    mean_loss, penalty = _mean_loss(configuration, start), penalty_graph(penalised)
    if penalty is None:
        return mean_loss
    session = open_session(penalty, runtime.device, runtime.n_jobs)
    return lambda weights: mean_loss(weights) + float(session.run(None, dict(weights))[0])
