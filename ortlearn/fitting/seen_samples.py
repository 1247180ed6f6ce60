"""Whether a model was fitted on the samples: its losses are compared with those of clones."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from ..comparison.evidence import best_of, bounded
from ..comparison.measures import CLONES, MANY_SAMPLES, folds_without_copies, weights_of
from ..exceptions import OrtlearnError
from ..inference.running import LiveInference
from ..inference.score_runner import ScoreRunner
from ..models import fitted_part
from ..models.capabilities import (
    BoostedStages,
    CrossFitted,
    capability_of,
    cross_fitting_of,
    with_few_members,
)
from ..models.registry import definition_or_default, inner_part
from ..preprocessing.initial_fit import after_steps, final_step, fit_clone, is_fitted, labels_within, reached
from ..problem.configuration import Configuration
from ..problem.samples import Samples
from ..quiet import quiet
from .method_scores import method_scores
from .start import Start, new_start
from .validation import evaluator

if TYPE_CHECKING:  # only ensembles need it
    from .growth import Growth

__all__ = ["is_seen"]

#: Standard errors by which the loss of samples must be lower for fits that contain them.
EVIDENCE_OF_OVERFITTING = 2.0
#: Differences of losses, relative to the largest, that are rounding.
NEAR = 1e-3


def is_seen(
    configuration: Configuration,
    start: Start,
    samples: Samples,
    again: bool,
    growth: Growth | None = None,
    folds_state: np.random.RandomState | None = None,
) -> bool:
    """Return whether the starting weights were probably fitted on the samples.

    Three clones are fitted, each on all folds but one. If they predict their own samples better than those
    left out, by more than chance, a model that predicts these nearly as well as clones that know them has
    seen them. If there is no difference, the comparison cannot tell, and the result is False. Of labels that
    are numbers, square roots of losses are compared, too, since few outliers decide on means.
    ``again`` says that the weights are those of an earlier training. A ``growth`` keeps the clones, for the
    folds that ``folds_state`` draws.
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
    sums, outside, weights = np.zeros((2, len(own))), own.copy(), np.zeros(len(own))
    growth = None if _learns_labels(start.problem.source) else growth
    clones = _Clones(configuration, start, samples, growth)
    if clones.by_methods(own) and growth is not None:
        growth.by_methods = start.problem
    folds = folds_without_copies(classes, start.data, folds_state or random_state)
    for kept, left_out in folds[:CLONES]:
        losses = clones.losses(kept)
        if losses is None:
            return False
        sums[:, kept] += losses[kept], np.ones(len(kept))
        outside[left_out], weights[left_out] = losses[left_out], weights_of(start.data)[left_out]
        if best_of(np.stack([own, outside]), weights, [None], EVIDENCE_OF_OVERFITTING) == 0:
            return _members_have_seen(configuration, start, samples)  # such as after a drift
    views = [np.stack([outside, sums[0] / np.maximum(sums[1], 1), own])]
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


class _Clones:
    """Clones of a model, each fitted on some of the samples, and their losses on all."""

    def __init__(
        self, configuration: Configuration, start: Start, samples: Samples, growth: Growth | None
    ) -> None:
        self._configuration, self._start, self._samples, self._growth = configuration, start, samples, growth
        self._scores, self._has_methods = start.problem.trainable.scores, False

    @cached_property
    def _runner(self) -> ScoreRunner:
        return ScoreRunner(self._start.problem.task(False), self._configuration.runtime)

    def by_methods(self, own: np.ndarray) -> bool:
        """Return whether the model's own methods give the losses of its graph; clones then use theirs."""
        source, own_size = self._start.problem.source, np.abs(own).max(initial=0.0)
        part = None if source is None else reached(source)
        if part is None or capability_of(part, BoostedStages) is not None:
            return False
        with quiet():
            try:
                found = self._of_methods(part, after_steps(source, self._samples.X))
            except Exception:  # such as a method that takes other samples than the graph
                return False
        self._has_methods = found is not None and bool(np.abs(found - own).max() <= NEAR * own_size)
        return self._has_methods

    def losses(self, kept: np.ndarray) -> np.ndarray | None:
        """Fit a clone on some samples; return None if the fit fails or a class is missing."""
        seed, samples, configuration = self._start.state.seed, self._samples, self._configuration
        with quiet():
            try:
                if self._growth is not None:
                    part, other = self._growth.clone(samples, kept)
                    X = self._growth.after_steps(samples.X)
                else:
                    some, random_state = samples.take(kept), np.random.RandomState(seed % 2**32)
                    given = {"sample_weight": some.sample_weight, "random_state": random_state}
                    source = fit_clone(_fitted_again(configuration.source), some.X, some.y, **given)
                    part, other, X = reached(source), None, after_steps(source, samples.X)
                if part is None or self._scores is None:
                    return None
                rule = capability_of(part, BoostedStages)
                if rule is not None and not self._scores.target_transformers:
                    return self._of_scores(rule.scores_of(part, X))
                if self._has_methods:
                    return self._of_methods(part, X)
                if other is None:
                    known = configuration.in_type(self._start.problem.dtype)
                    known = replace(known, source=source, warm_start=True)
                    random_state = np.random.RandomState(seed % 2**32)
                    other = new_start(known, samples, random_state, seed, compares=False)
                others = other.problem.trainable.scores
                alike = others is not None and self._scores.shape == others.shape
                return _losses(configuration, other) if alike else None
            except Exception:  # a fit that fails, as for an unknown category, says nothing about the model
                return None

    def _of_methods(self, part: Any, X: Any) -> np.ndarray | None:
        """Return the losses for scores by the methods of a model; None without scores, or other classes."""
        known = getattr(reached(self._start.problem.source), "classes_", None)
        if known is not None and not np.array_equal(known, part.classes_):
            return None
        scores = method_scores(self._start.problem, part, X)
        return None if scores is None else self._of_scores(scores)

    def _of_scores(self, scores: np.ndarray) -> np.ndarray | None:
        """Return the loss of each sample; None if a class is missing."""
        problem, data = self._start.problem, self._start.data
        scores = scores.reshape(len(scores), -1).astype(problem.dtype)
        if self._scores is None or scores.shape[1] != self._scores.n_outputs:
            return None
        losses = self._runner.losses(scores, data)
        return losses if problem.encoder.class_indices(data.y) is None else bounded(losses)


def _learns_labels(source: Any) -> bool:
    """Return whether steps before the last one are fitted to labels: clones refit them, too."""
    steps = [step for _, step in source.steps[:-1]] if isinstance(source, Pipeline) else []
    known = [step for step in steps if isinstance(step, BaseEstimator)]
    nested = [own for step in known for own in step.get_params().values() if isinstance(own, BaseEstimator)]
    return any(get_tags(own).target_tags.required for own in (*known, *nested))


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
