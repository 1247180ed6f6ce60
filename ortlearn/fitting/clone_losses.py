"""Losses of a model's samples, and those of clones fitted on some of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..comparison.evidence import bounded
from ..inference.method_scores import METHODS, MethodScores
from ..inference.running import LiveInference
from ..inference.score_runner import ScoreRunner
from ..models.capabilities import BoostedStages, capability_of, with_few_members
from ..models.registry import definition_or_default, inner_part
from ..preprocessing.initial_fit import after_steps, fit_clone, reached
from ..problem.configuration import Configuration
from ..problem.samples import Samples
from ..quiet import quiet
from .start import Start, new_start
from .validation import evaluator

if TYPE_CHECKING:  # only ensembles need it
    from .growth import Growth

__all__ = ["CloneLosses", "bounded_of", "sample_losses"]

#: Differences of losses, relative to the largest, that are rounding.
NEAR = 1e-3


class CloneLosses:
    """Clones of a model, each fitted on some of the samples, and their losses on all."""

    def __init__(
        self, configuration: Configuration, start: Start, samples: Samples, growth: Growth | None
    ) -> None:
        self._configuration, self._start, self._samples, self._growth = configuration, start, samples, growth
        self._scores = start.problem.trainable.scores
        self._method: MethodScores | None = None

    @cached_property
    def _runner(self) -> ScoreRunner:
        return ScoreRunner(self._start.problem.task(False), self._configuration.runtime)

    def find_method(self, own: np.ndarray) -> bool:
        """Return whether a method of the model gives the losses of its graph: it is used for clones, too."""
        source, known = self._start.problem.source, self._scores
        part = None if source is None else reached(source)
        if part is None or known is None or capability_of(part, BoostedStages) is not None:
            return False
        if known.positions is not None or known.groups or known.target_transformers:
            return False
        for self._method in METHODS.get(known.task, ()):
            with quiet(), suppress(Exception):  # the model lacks it, or it takes other samples than the graph
                found = self._of_method(part, after_steps(source, self._samples.X))
                if found is not None and np.abs(found - own).max() <= NEAR * np.abs(own).max():
                    return True
        self._method = None
        return False

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
                    return bounded_of(self._start, self._of_scores(rule.scores_of(part, X)))
                if self._method is not None:
                    return bounded_of(self._start, self._of_method(part, X))
                if other is None:
                    known = configuration.in_type(self._start.problem.dtype)
                    known = replace(known, source=source, warm_start=True)
                    random_state = np.random.RandomState(seed % 2**32)
                    other = new_start(known, samples, random_state, seed, compares=False)
                others = other.problem.trainable.scores
                alike = others is not None and self._scores.shape == others.shape
                return bounded_of(other, sample_losses(configuration, other)) if alike else None
            except Exception:  # a fit that fails, as for an unknown category, says nothing about the model
                return None

    def scores_by_method(self, part: Any, X: Any) -> np.ndarray | None:
        """Return the scores of a model by its method; None for other classes."""
        known = getattr(reached(self._start.problem.source), "classes_", None)
        assert self._method is not None and self._scores is not None
        if known is not None and not np.array_equal(known, part.classes_):
            return None
        with np.errstate(all="ignore"):  # such as logarithms of zero
            found = np.asarray(self._method(self._scores, part, X))
        return found.reshape(len(found), -1).astype(self._start.problem.dtype)

    def _of_method(self, part: Any, X: Any) -> np.ndarray | None:
        """Return the losses for scores by the method of a model; None for other classes."""
        scores = self.scores_by_method(part, X)
        return None if scores is None else self._of_scores(scores)

    def _of_scores(self, scores: np.ndarray) -> np.ndarray | None:
        """Return the loss of each sample; None if a class is missing."""
        data, scores = self._start.data, scores.reshape(len(scores), -1).astype(self._start.problem.dtype)
        if self._scores is None or scores.shape[1] != self._scores.n_outputs:
            return None
        return self._runner.losses(scores, data)


def sample_losses(configuration: Configuration, start: Start) -> np.ndarray:
    """Return the loss of each sample, with the starting weights."""
    problem, data = start.problem, start.data
    runner = LiveInference(problem, problem.trainable.model, configuration.runtime)
    if problem.trainable.text_steps and data.members is None:  # features of documents, as in the training
        runner = evaluator(configuration, problem, data, prepares=False)
    return runner.with_weights(start.weights).losses(data.X, data.y).reshape(len(data), -1).mean(axis=1)


def bounded_of(start: Start, losses: np.ndarray | None) -> Any:
    """Return bounded losses of classes, or those of numbers."""
    if losses is None or start.problem.encoder.class_indices(start.data.y) is None:
        return losses
    return bounded(losses)


def _fitted_again(source: Any) -> Any:
    """Return what clones are fitted of: the estimator inside a frozen one or a search, with few members."""
    inner = inner_part(source) if definition_or_default(source).wraps else None
    if inner is not None:
        return _fitted_again(inner[1])
    if not isinstance(source, Pipeline):
        return with_few_members(source)
    name, last = source.steps[-1]
    return Pipeline([*source.steps[:-1], (name, _fitted_again(last))])
