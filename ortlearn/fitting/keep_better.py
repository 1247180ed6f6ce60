"""Compare a finished training with its start."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..comparison.candidates import Finished, KeptStart, Setting
from ..comparison.evidence import choose
from ..comparison.measures import Losses, Measure, Part, Weights
from ..data.samples import Data
from ..learning_rates import LearningRateLBFGS
from ..problem.configuration import Configuration
from ..runtime.checked_sessions import open_session
from ..training.graphs.objective import penalty_graph
from ..training.graphs.task import TrainingTask
from ..training.state import TrainingState
from .start import Start, with_anchor
from .validation import BaseValidation, evaluator

__all__ = ["keep_better"]

#: Standard errors with which few held-out samples show no harm of a training with a chosen learning rate.
NO_HARM = -2.0


def keep_better(
    configuration: Configuration,
    start: Start,
    state: TrainingState,
    validation: BaseValidation | None,
    trained: tuple[TrainingTask, Data],
) -> tuple[TrainingState, str]:
    """Return the state, with the starting weights if training did not improve the model, and the reason."""
    text = "the training objective"
    value = _objective(configuration, start, trained) if validation is None else validation.loss
    if validation is not None:
        text = f"the loss of {validation.n_samples} held-out samples"
    is_better, (before, after) = _compared(start, state, Losses(value))
    if not (is_better or _is_undecided(configuration, start, state, validation)):
        state = state.back_to(start.weights)
    return state, f"{text} is {before:.4g} before and {after:.4g} after training"


def _compared(
    start: Start, state: TrainingState, measure: Measure, evidence: float = 0.0
) -> tuple[bool, np.ndarray]:
    """Return whether a state is better than the start, and the mean losses of both."""
    choice = choose(Setting(start.state, evidence=evidence), measure, [[Finished(state)]])
    return not isinstance(choice.candidate, KeptStart), choice.means


def _is_undecided(
    configuration: Configuration, start: Start, state: TrainingState, validation: BaseValidation | None
) -> bool:
    """Return whether held-out samples do not show that training with a chosen learning rate did harm.

    Few samples can be held out of few; the loss of the training samples must decrease.
    """
    is_chosen = configuration.updates.learning_rate is not None and start.source is None
    if not is_chosen or validation is None or validation.losses(start.weights) is None:
        return False
    held_out = Losses(validation.losses, Part(validation.data))
    no_harm, _ = _compared(start, state, held_out, NO_HARM)
    return no_harm and _compared(start, state, Losses(_mean_loss(configuration, start)))[0]


def _mean_loss(configuration: Configuration, start: Start) -> Callable[[Weights], float]:
    """Return the function of weights that computes the mean loss of all samples."""
    runner = evaluator(configuration, start.problem, start.data, prepares=False)
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
        judge = runtime.new_step(task.changed(learning_rate=LearningRateLBFGS()))
        judge = judge.selected(data, [], start.weights)
        judge.start(data, [], start.weights)
        return lambda weights: judge.evaluate(weights)[0]
    mean_loss, penalty = _mean_loss(configuration, start), penalty_graph(penalised)
    if penalty is None:
        return mean_loss
    session = open_session(penalty, runtime.device, runtime.n_jobs)
    return lambda weights: mean_loss(weights) + float(session.run(None, dict(weights))[0])
