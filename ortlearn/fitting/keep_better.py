"""Compare a finished training with its start, and a model with a fit on the samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from ..comparison.candidates import Finished, KeptStart, Setting
from ..comparison.evidence import best_of, bounded, choose
from ..comparison.measures import MANY_SAMPLES, Losses, Measure, Part, Weights, folds, weights_of
from ..data.samples import Data
from ..exceptions import OrtlearnError
from ..inference.running import LiveInference
from ..learning_rates import LearningRateLBFGS
from ..models import fitted_part
from ..models.capabilities import CrossFitted, capability_of, cross_fitting_of, with_few_members
from ..models.registry import definition_or_default, inner_part
from ..preprocessing.initial_fit import after_steps, final_step, fit_clone, is_fitted, labels_within
from ..problem.configuration import Configuration
from ..problem.samples import Samples
from ..quiet import quiet
from ..runtime.checked_sessions import open_session
from ..training.graphs.objective import penalty_graph
from ..training.graphs.task import TrainingTask
from ..training.state import TrainingState
from .start import Start, new_start, with_anchor
from .validation import BaseValidation, evaluator

__all__ = ["is_seen", "keep_better"]

#: Standard errors by which the loss of samples must be lower for fits that contain them.
EVIDENCE_OF_OVERFITTING = 2.0
#: The same, with which few held-out samples show no harm of a training with a chosen learning rate.
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


def is_seen(configuration: Configuration, start: Start, samples: Samples, again: bool) -> bool:
    """Return whether the starting weights were probably fitted on the samples.

    Clones are fitted on either half. If they predict their own half better than the other one, by more than
    chance, a model that predicts the samples nearly as well as the clones their own half has seen them. If
    the clones predict both halves equally well, the comparison cannot tell, and the result is False. Of
    labels that are numbers, square roots of losses are compared, too, since few outliers decide on means.
    ``again`` says that the weights are those of an earlier training.
    """
    if len(start.data) < 2:
        return False
    source = configuration.source
    tags = get_tags(final_step(source))  # a pipeline does not say that its last step requires labels
    if start.problem.needs_labels and tags.transformer_tags is not None and not tags.target_tags.required:
        return False  # its fit has not seen the labels
    if not is_fitted(source) and not again:
        return True
    random_state = np.random.RandomState(start.state.seed % 2**32)
    rows = np.arange(len(start.data))
    if len(rows) > MANY_SAMPLES:
        rows = np.sort(random_state.choice(len(rows), MANY_SAMPLES, replace=False))
    samples, start = samples.take(rows), replace(start, data=start.data.take(rows))
    own, classes = _losses(configuration, start), start.problem.encoder.class_indices(start.data.y)
    inside, outside, weights = own.copy(), own.copy(), weights_of(start.data)
    for kept, left_out in folds(classes, len(rows), random_state, 2):
        losses = _losses_of_clone(configuration, start, samples, kept)
        if losses is None:
            return False
        inside[kept], outside[left_out] = losses[kept], losses[left_out]
        new = np.stack([own, outside])[:, left_out]
        if best_of(new, weights[left_out], [None], EVIDENCE_OF_OVERFITTING) == 0:
            return _members_have_seen(configuration, start, samples)  # such as after a drift
    views = [np.stack([outside, inside, own])]
    if classes is None:  # outliers, whose losses are large, do not decide on square roots
        views.append(np.sqrt(views[0] - views[0].min()))
    overfits = any(best_of(view[:2], weights, [None], EVIDENCE_OF_OVERFITTING) == 0 for view in views)
    if overfits and all(weights @ (view[2] - view[:2].mean(axis=0)) < 0 for view in views):
        return True
    return _members_have_seen(configuration, start, samples)


def _members_have_seen(configuration: Configuration, start: Start, samples: Samples) -> bool:
    """Return whether a part whose outputs were cross-validated has seen the samples."""
    source = start.problem.source
    if isinstance(source, Pipeline) and len(source.steps) > 1 and cross_fitting_of(source[:-1]):
        steps, data = source[:-1], (samples.X, samples.y)
        codes = [np.asarray(own.transform(samples.X)) for own in (steps, clone(steps).fit(*data))]
        if (
            codes[0].shape == codes[1].shape
            and codes[0].dtype.kind == "f"
            and np.allclose(codes[0], codes[1])
        ):
            return True
    part = fitted_part(source)
    rule = capability_of(part, CrossFitted)
    if rule is None or not rule.applies(part):
        return False
    classes = start.problem.encoder.class_indices(start.data.y)
    inside = replace(samples, X=after_steps(source, samples.X), y=labels_within(source, samples.y))
    inside = inside if classes is None else replace(inside, y=np.ravel(classes))
    known = replace(configuration.in_type(start.problem.dtype), warm_start=True)
    for member in rule.members(part):
        try:
            own = replace(known, source=member)
            random_state = np.random.RandomState(start.state.seed % 2**32)
            other = new_start(own, inside, random_state, start.state.seed, compares=False)
            if is_seen(own, other, inside, True):
                return True
        except OrtlearnError:  # a member without an ONNX form
            continue
    return False


def _losses_of_clone(
    configuration: Configuration, start: Start, samples: Samples, kept: np.ndarray
) -> np.ndarray | None:
    """Return losses of all samples by a clone fitted on some; None if the fit fails or a class is missing."""
    some, seed = samples.take(kept), start.state.seed
    first, second = (np.random.RandomState(seed % 2**32) for _ in range(2))
    with quiet():
        try:
            source = _fitted_again(configuration.source)
            clone = fit_clone(source, some.X, some.y, sample_weight=some.sample_weight, random_state=first)
            known = replace(configuration.in_type(start.problem.dtype), source=clone, warm_start=True)
            other = new_start(known, samples, second, seed, compares=False)
            scores, others = start.problem.trainable.scores, other.problem.trainable.scores
            same = scores is not None and others is not None and scores.shape == others.shape
            return _losses(configuration, other) if same else None
        except Exception:  # a fit that fails, as for an unknown category, says nothing about the model
            return None


def _losses(configuration: Configuration, start: Start) -> np.ndarray:
    """Return the loss of each sample, with the starting weights."""
    problem, data = start.problem, start.data
    runner = LiveInference(problem, problem.trainable.model, configuration.runtime)
    if problem.trainable.text_steps and data.members is None:  # features of documents, as in the training
        runner = evaluator(configuration, problem, data, prepares=False)
    losses = runner.with_weights(start.weights).losses(data.X, data.y).reshape(len(data), -1).mean(axis=1)
    return losses if problem.encoder.class_indices(data.y) is None else bounded(losses)


def _fitted_again(source: Any) -> Any:
    """Return what clones are fitted of: the estimator inside a frozen one or a search, with few members."""
    inner = inner_part(source) if definition_or_default(source).wraps else None
    if inner is not None:
        return _fitted_again(inner[1])
    if not isinstance(source, Pipeline):
        return with_few_members(source)
    name, last = source.steps[-1]
    return Pipeline([*source.steps[:-1], (name, _fitted_again(last))])
