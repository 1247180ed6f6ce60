"""Ensembles of trees in streams: each call fits trees on a window, and decides which share they get."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..comparison.evidence import best_of, bounded, improves
from ..comparison.measures import misclassified, weights_of
from ..inference.score_runner import ScoreRunner
from ..models import fitted_part
from ..preprocessing.columns import count_samples
from ..problem.configuration import Configuration
from ..problem.objective_weights import read_data
from ..problem.samples import Samples
from .fitted_model import FittedModel
from .growth import Growth
from .start import Start

__all__ = ["TreeStream", "Window"]

#: Fewest new samples that decide about an ensemble; fewer, and those that lack a class, wait for others.
JUDGES = 50
#: Largest number of trees, relative to that of the first model.
LARGEST = 1.5
#: Standard errors by which older trees must decrease the loss to be kept.
EVIDENCE = 1.0
#: Standard errors by which a loss exceeds those of the last calls after a change; number of these; weights of
#: the losses before and at the change in the bound of the next one.
CHANGE, CALLS, LASTING = 3.0, 5, (3, 1)


@dataclass(frozen=True)
class Window:
    """The last samples of a stream, and the ensembles of a call that the next samples compare."""

    samples: Samples
    size: int  # largest number of samples
    n_trees: int  # of the first model
    old: Any  # the ensemble before its last trees were added
    new: Any  # ensemble fitted on the window; None before the first one
    losses: tuple[float, ...] = ()  # of the last calls since a change, before their samples were learnt
    waiting: Samples | None = None  # too few to decide, and not yet in the window
    forgot: tuple[float, ...] = ()  # losses before and at a change, if the last call forgot earlier samples

    def with_more(self, samples: Samples) -> Window:
        """Return the window after new samples."""
        joined = self.samples.joined(samples)
        return replace(self, samples=joined.take(np.arange(count_samples(joined.X))[-self.size :]))


@dataclass(frozen=True)
class TreeStream:
    """A call of ``partial_fit`` for an ensemble that may grow.

    Each call fits an ensemble on the window. New samples decide, before they are learnt, which share it gets:
    that of the last call is compared with older trees.
    """

    configuration: Configuration
    start: Start
    samples: Samples  # of this call
    last: FittedModel | None
    growth: Growth

    def trained(self) -> tuple[float, Start, Window]:
        """Return the loss of the samples before they are learnt, and the start and the window afterwards."""
        start, last = self.start, self.last
        source, known = (start.problem.source, None) if last is None else (last.to_sklearn(), last.window)
        if known is not None and known.waiting is not None:
            samples = known.waiting.joined(self.samples)
            joined = replace(start, data=read_data(start.problem, samples, start.features))
            known = replace(known, waiting=None)
            return replace(self, samples=samples, start=joined)._after(fitted_part(source), known)
        return self._after(fitted_part(source), known)

    def _after(self, part: Any, known: Window | None) -> tuple[float, Start, Window]:
        """Return the same, given the ensemble and the window before."""
        start, rule = self.start, self.growth.rule
        scores = self.growth.scores_of(part, self.samples)
        weights = weights_of(start.data)
        losses = self._losses([scores], self.samples)[0]
        loss = float(np.average(losses, weights=weights))
        if known is None and self.last is None and not self.growth.was_given:  # fitted on these samples
            return loss, start, self._window(part, part)
        if len(weights) < JUDGES or (len(weights) < rule.window(part) and self._lacks_classes(known)):
            known = known or replace(self._window(part, None), samples=self.samples.take(np.arange(0)))
            return loss, start, replace(known, waiting=self.samples)
        window = self._window(part, None) if known is None else known.with_more(self.samples)
        has_changed = self._has_changed(losses, loss, window)
        if has_changed:  # earlier samples are forgotten
            window = replace(window, samples=self.samples)
        share = 1.0 if has_changed else self._share(window, weights)
        new = self.growth.fitted(window.samples)
        if new is not None and share > 0:
            part = rule.extended(window.old, new, share, round(LARGEST * window.n_trees))
            start = replace(self.growth, samples=window.samples).start_with(start.state, part)
        keeps_old = share == 0 or has_changed  # to compare it once more
        old, recent = window.old if keeps_old else part, () if has_changed else (*window.losses, loss)
        forgot = (float(np.mean(window.losses)), loss) if has_changed and not window.forgot else ()
        new = new or window.new
        return loss, start, replace(window, new=new, old=old, losses=recent[-CALLS:], forgot=forgot)

    def _lacks_classes(self, known: Window | None) -> bool:
        """Return whether the samples of a call, which would decide, lack a class that was learnt."""
        classes = self.start.problem.targets.classes
        if classes is None or isinstance(classes, list):
            return False
        learnt = classes if known is None or self.growth.was_given else known.samples.y
        return len(np.setdiff1d(learnt, self.samples.y)) > 0

    def _has_changed(self, losses: np.ndarray, loss: float, window: Window) -> bool:
        """Return whether labels depend on features in another way, or those of the last call did in two."""
        if window.forgot:
            return bool(loss > np.average(window.forgot, weights=LASTING))
        recent = window.losses
        error = losses.std() * np.sqrt((1 + 1 / max(len(recent), 1)) / len(losses))
        return len(recent) > 1 and error > 0 and improves(loss - float(np.mean(recent)), error, CHANGE)

    def _window(self, old: Any, new: Any) -> Window:
        """Return the first window."""
        rule = self.growth.rule
        return Window(self.samples, rule.window(old), rule.n_trees(old), old, new)

    def _share(self, window: Window, weights: np.ndarray) -> float:
        """Return the share of new trees with the lowest loss on the samples of this call."""
        growth, rule, new, judges = self.growth, self.growth.rule, window.new, self.samples
        shares = rule.stream_shares
        if new is None:  # the first call for a fitted model: half of the samples decide
            order = np.random.RandomState(self.start.state.seed % 2**32).permutation(len(weights))
            judges, weights = judges.take(order[::2]), weights[order[::2]]
            new, shares = growth.fitted(self.samples.take(order[1::2])), shares[::-1]
        if new is None or not weights.any():
            return 0.0
        old, scores = (growth.scores_of(own, judges) for own in (window.old, new))
        if old is None or scores is None:
            return 0.0
        rows = [rule.mixed_scores(old, scores, share) for share in shares]
        losses = self._losses(rows, judges)
        if self.start.problem.targets.classes is not None:
            losses = bounded(losses)
        best = best_of(losses, weights, shares[1:], EVIDENCE)
        return shares[0 if best is None else best + 1]

    def _losses(self, scores: list[np.ndarray], samples: Samples) -> np.ndarray:
        """Return the losses of some scores, or errors of votes, float64 of shape (n_scores, n_samples)."""
        problem = self.start.problem
        data = read_data(problem, samples, self.start.features)
        if self.growth.rule.by_votes:
            classes = problem.encoder.class_indices(data.y)
            return np.array([misclassified(own, classes) for own in scores])
        runner = ScoreRunner(problem.task(False), self.configuration.runtime)
        return np.array([runner.losses(own.astype(problem.dtype), data) for own in scores], dtype=np.float64)
