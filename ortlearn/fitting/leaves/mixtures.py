"""Class shares of leaves, mixed with constant ones, for another loss than that of the trees.

Probabilities p of a mean of trees become ``(1 - a) p + a c``, the affine map that leaves of any trees can
represent. Its few numbers are found by the losses of samples that the trees have not seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax

from ...comparison.candidates import Candidate, KeptStart, LeafMixture
from ...comparison.evidence import best_of
from ...comparison.measures import MANY_SAMPLES, folds, weights_of
from ...data.samples import Data
from ...inference.score_runner import ScoreRunner
from ...problem.samples import Samples
from .clones import unseen_predictions
from .shares import LeafShares

__all__ = ["Mixtures"]

#: Weights of constant shares from which the best one is searched.
STARTS = 0.05, 0.5
#: Change of variables for differences of losses, which may be float32; smallest probability in them.
STEP, SMALLEST = 1e-3, 1e-5
#: Parts of new samples for shares and for mixtures.
PARTS = 2


@dataclass(frozen=True)
class Mixtures:
    """Mixtures for a model with the class shares of a start, whose scores are logarithms."""

    shares: LeafShares
    runner: ScoreRunner
    start: Mapping[str, np.ndarray]
    random_state: np.random.RandomState

    def of_new_samples(self, data: Data) -> list[Candidate]:
        """Return candidates for samples that the trees have not seen."""
        return [
            LeafMixture(strength, *self._best(self._averaged(strength, data), data))
            for strength in LeafMixture.strengths
        ]

    def of_seen_samples(self, samples: Samples, data: Data) -> Candidate:
        """Return the candidate that is shown to be better than the start, or the start.

        Each sample is predicted by trees that have not seen it, or by a fit on others.
        """
        if data.members is None:
            unseen = unseen_predictions(
                self.shares.problem, samples, data, self.random_state, "predict_proba"
            )
        else:
            unseen = data, self._probabilities(self.start, data)
        if unseen is None or not weights_of(unseen[0]).any():
            return KeptStart()
        part, found = unseen
        share, constant = self._best(found, part)
        table = [self._losses(own, part) for own in (found, (1 - share) * found + share * np.array(constant))]
        best = best_of(np.stack(table), weights_of(part), [LeafMixture], LeafMixture.evidence)
        return KeptStart() if best is None else LeafMixture(math.inf, share, constant)

    def _averaged(self, strength: float, data: Data) -> np.ndarray:
        """Return probabilities of samples by shares that are averaged with those of others."""
        if math.isinf(strength):
            return self._probabilities(self.start, data)
        classes = self.shares.problem.encoder.class_indices(data.y)
        found = np.empty((len(data), len(self.shares.problem.targets.classes)))
        for kept, left_out in folds(classes, len(data), self.random_state, PARTS, len(data)):
            weights = self.shares.averaged(self.start, data.take(kept), strength)
            found[left_out] = self._probabilities(weights, data.take(left_out))
        return found

    def _probabilities(self, weights: Mapping[str, np.ndarray], data: Data) -> np.ndarray:
        """Return probabilities, float64 of shape (n_samples, n_classes)."""
        return softmax(self.runner.scores(weights, data).astype(np.float64), axis=1)

    def _losses(self, probabilities: np.ndarray, data: Data) -> np.ndarray:
        """Return losses of probabilities, float64 of shape (n_samples,)."""
        scores = np.log(np.maximum(probabilities, SMALLEST)).astype(self.shares.problem.dtype)
        return self.runner.losses(scores, data).astype(np.float64)

    def _best(self, probabilities: np.ndarray, data: Data) -> tuple[float, tuple[float, ...]]:
        """Return the weight of constant probabilities, and these, that give a mixture the lowest loss."""
        if len(data) > MANY_SAMPLES:  # for a few numbers
            drawn = np.sort(self.random_state.choice(len(data), MANY_SAMPLES, replace=False))
            probabilities, data = probabilities[drawn], data.take(drawn)
        weights = weights_of(data)
        weights = weights / max(weights.sum(), np.finfo(float).tiny)

        def parts(point: np.ndarray) -> tuple[float, np.ndarray]:
            return float(expit(point[0])), softmax(point[1:])

        def loss(point: np.ndarray) -> float:
            share, constant = parts(point)
            return float(weights @ self._losses((1 - share) * probabilities + share * constant, data))

        means = np.log(np.maximum(weights @ probabilities, SMALLEST))
        starts = [np.append(logit(share), means) for share in STARTS]
        found = [minimize(loss, start, method="L-BFGS-B", options={"eps": STEP}) for start in starts]
        share, constant = parts(min(found, key=lambda own: own.fun).x)
        return share, tuple(constant.tolist())
