"""Candidates: the start, and trainings that may improve it.

A candidate is a record that is stored in checkpoints. It trains itself in a :class:`Setting`, on a part of
the samples to be compared, and on all of them once it is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..data.samples import Data
from .measures import CLONES, Measure, Part, State, Weights

__all__ = [
    *("Candidate", "Finished", "FreshPull", "Grown", "KeptStart", "LeafEstimate", "LeafMeans"),
    *("LeafMixture", "Pull", "RestandardisedPull", "Setting", "ShiftedPull"),
]


@dataclass(frozen=True)
class Setting:
    """Settings and functions of the training of candidates."""

    start: State
    solve: Callable[..., Any] | None = None  # trains by a solver, with ``pull`` and ``toward``
    # By kind of pull, the weights to pull towards.
    centers: Mapping[type[Pull], Callable[[Data], Weights]] = field(default_factory=dict)
    # Averages class shares of leaves, given a strength, and mixes them with constant ones.
    leaf_means: Callable[..., Weights] | None = None
    # Estimates values of leaves, given factors of the start and of all samples.
    leaf_estimates: Callable[[Data, float, float], Weights] | None = None
    growth: Any = None  # new trees for an ensemble, a Growth or None
    evidence: float = -math.inf  # fewest standard errors that other weights require


@dataclass(frozen=True)
class Candidate:
    """A training that may be kept."""

    #: Standard errors by which the loss must decrease for the candidate to be kept.
    evidence: ClassVar[float] = 1.0
    #: Those that are enough after another candidate was shown to be better than the start.
    later: ClassVar[float] = math.inf
    #: Strengths to compare, in decreasing order.
    strengths: ClassVar[tuple[float, ...]] = ()
    #: Number of parts of the samples on which it is compared; None for all.
    n_parts: ClassVar[int | None] = None

    @property
    def family(self) -> object:
        """Equal for candidates that differ in strength only: the strongest of nearly equal ones is kept."""
        return type(self)

    def requires(self, setting: Setting) -> float:
        """Return the evidence that it requires in a setting."""
        return max(self.evidence, setting.evidence)

    def upon(self, kept: Candidate) -> Candidate:
        """Return the candidate for a comparison with the one that is kept so far."""
        return self

    def train(self, setting: Setting, part: Part, previous: Any = None) -> Any:
        """Return the result on samples; it may begin with that of the previous candidate of the kind."""
        raise NotImplementedError

    def tried(
        self, setting: Setting, measure: Measure, parts: tuple[Part, Part], kept: Any, previous: Any
    ) -> tuple[Any, Any]:
        """Train on the first part; return scores of the second one, and the result.

        ``kept`` are the scores of the candidate that is kept so far.
        """
        result = self.train(setting, parts[0], previous)
        return measure.scores(result.weights, parts[1]), result

    def errors(self, measure: Measure, part: Part, result: Any) -> np.ndarray | None:
        """Return which samples a result misclassifies; None for as many as before."""
        return measure.errors(result.weights, part)

    def completed(self, setting: Setting, model: Any) -> Any:
        """Return the fitted model with what training adds besides weights."""
        return model


@dataclass(frozen=True)
class KeptStart(Candidate):
    """The start, which is the first candidate."""

    def train(self, setting: Setting, part: Part, previous: Any = None) -> Any:
        return setting.start.back_to(setting.start.weights)


@dataclass(frozen=True)
class Pull(Candidate):
    """The objective plus ``strength / 2 * |u - u_start|^2``, minimised by a solver.

    The strength is relative to the curvature of the objective, and u are the weights in the coordinates of
    :class:`~ortlearn.training.solvers.coordinates.Coordinates`.
    """

    #: With one standard error, twice as many cases without drift lost more than 0.01 of their score.
    evidence = 1.25
    strengths: ClassVar[tuple[float, ...]] = (10.0, 1.0, 0.1, 0.01, 0.001)

    strength: float = 0.0

    def train(self, setting: Setting, part: Part, previous: Any = None) -> Any:
        assert setting.solve is not None
        of_samples = setting.centers.get(type(self))
        center = setting.start.weights if of_samples is None else of_samples(part.data)
        weights = center if previous is None else previous.weights
        return setting.solve(part.data, weights, pull=self.strength, toward=center)


class FreshPull(Pull):
    """A pull towards fresh weights."""

    strengths = (0.03, 0.003)


class RestandardisedPull(Pull):
    """A pull towards the start after features are standardised with the new samples.

    As in Li, Y. et al., "Revisiting batch normalization for practical domain adaptation", ICLR workshop 2017.
    """

    strengths = (10.0, 1.0)


class ShiftedPull(Pull):
    """A pull towards the values of leaves or neighbours, all shifted by the constant with the lowest loss."""

    #: With fewer, or without the others, absolute errors increased by up to 8 % in some of 108 cases.
    evidence = 2.0


@dataclass(frozen=True)
class LeafMeans(Candidate):
    """Class shares in the leaves of trees, averaged with those of the new samples.

    The old shares of a leaf count as ``strength`` samples.
    """

    evidence = Pull.evidence
    strengths: ClassVar[tuple[float, ...]] = (16.0, 4.0, 1.0, 0.25)

    strength: float

    def train(self, setting: Setting, part: Part, previous: Any = None) -> Any:
        assert setting.leaf_means is not None
        return setting.start.with_weights(dict(setting.leaf_means(part.data, *astuple(self))))


@dataclass(frozen=True)
class LeafMixture(LeafMeans):
    """Averaged class shares, mixed with constant ones, for another loss than that of the trees."""

    strengths = (math.inf, *LeafMeans.strengths)

    share: float  # of the constant ones
    constant: tuple[float, ...]


@dataclass(frozen=True)
class LeafEstimate(Candidate):
    """Values of leaves for a loss, by :class:`~ortlearn.fitting.leaves.estimates.LeafEstimates`."""

    n_parts = 3

    base: float  # factor of the values of the start
    pooled: float  # weight of all samples, besides those that share leaves

    def train(self, setting: Setting, part: Part, previous: Any = None) -> Any:
        assert setting.leaf_estimates is not None
        return setting.start.with_weights(dict(setting.leaf_estimates(part.data, self.base, self.pooled)))


@dataclass(frozen=True)
class Grown(Candidate):
    """The candidate kept before, and trees fitted on new samples with a share of the scores."""

    n_parts = CLONES
    later = 0.5

    share: float
    base: Candidate = KeptStart()

    @property
    def family(self) -> object:
        return self

    def requires(self, setting: Setting) -> float:
        return setting.growth.rule.evidence

    def upon(self, kept: Candidate) -> Candidate:
        return replace(self, base=KeptStart() if self.share == 1 else kept)  # nothing of it would be left

    def train(self, setting: Setting, part: Part, previous: Any = None) -> Any:
        return self.base.train(setting, part)

    def tried(
        self, setting: Setting, measure: Measure, parts: tuple[Part, Part], kept: Any, previous: Any
    ) -> tuple[Any, Any]:
        """Fit trees only, or take those of another share; ``kept`` are the scores of the base."""
        new, _ = found = previous or setting.growth.new_scores(*parts)
        if new is None or new.shape != kept.shape:
            return np.full_like(kept, np.nan), found
        return setting.growth.rule.mixed_scores(kept, new.astype(kept.dtype), self.share), found

    def errors(self, measure: Measure, part: Part, result: Any) -> np.ndarray | None:
        return result[1]

    def completed(self, setting: Setting, model: Any) -> Any:
        return setting.growth.completed(model, self.share)


@dataclass(frozen=True)
class Finished(Candidate):
    """A training that has ended; the setting says how much evidence it requires."""

    evidence = -math.inf

    result: State = field(compare=False)

    def train(self, setting: Setting, part: Part, previous: Any = None) -> Any:
        return self.result
