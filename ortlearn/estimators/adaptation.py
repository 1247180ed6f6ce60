"""Training from a model's own weights, held back as far as samples that are left out ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..quiet import quiet
from ..training import Data, LoopSettings
from ..training.solver_loop import run_full_batch, standardised_weights

__all__ = ["Candidate", "best_of", "bounded", "choose", "folds", "trained", "weights_of"]

#: Pulls towards the start that are tried, in curvatures of the objective at the start; first the strongest.
PULLS = (10.0, 1.0, 0.1, 0.01, 0.001)
#: The same towards other weights than the start.
OTHER_PULLS = {"fresh": (0.03, 0.003), "restandardised": (10.0, 1.0)}
#: Iterations of a solver for each of them, from the weights of the one before.
ITERATIONS = 20
#: Parts that samples are cut into, each left out once; of many samples, so many are drawn, and one part of
#: them is left out.
FOLDS, MANY_SAMPLES = 5, 5_000
#: Standard errors by which losses must fall before the start is left, and by which they may rise for a
#: stronger pull.
EVIDENCE, SLACK = 1.0, 0.25

#: Share of chance that probabilities are mixed with where models are compared by the loss of classes.
CHANCE = 0.05

Weights = dict[str, np.ndarray]
#: Takes weights and samples; returns the loss of each, of shape (n,).
Measure = Callable[[Weights, Data], np.ndarray]


@dataclass(frozen=True)
class Candidate:
    """A training that is held back: the objective, and a pull towards weights.

    Attributes
    ----------
    pull : float
        Strength of the pull; infinite where nothing is trained.
    center : {"start", "fresh", "restandardised"}
        What it is towards: the start, fresh weights, or the start as if its features had been standardised
        by other samples (as in Li, Y. et al., "Revisiting batch normalization for practical domain
        adaptation", ICLR workshop 2017).
    share : float
        Share of the scores of an ensemble that trees fitted on the new samples have, once it is trained.
    """

    pull: float
    center: str = "start"
    share: float = 0.0


def bounded(losses: np.ndarray) -> np.ndarray:
    """Return losses of classes, bounded by that of a probability of 5 %.

    A log loss becomes that of probabilities mixed with chance. Without a bound, the few samples of which a
    model was sure and wrong decide alone which one is better.
    """
    with np.errstate(over="ignore"):  # losses far below zero are densities
        return -np.log(CHANCE + (1 - CHANCE) * np.exp(-losses.astype(np.float64)))


def folds(labels: np.ndarray | None, n_samples: int, random_state: np.random.RandomState) -> Iterator[Any]:
    """Yield numbers of samples to train on and to leave out, classes in their shares where there are some."""
    from sklearn.model_selection import KFold, StratifiedKFold  # longer to import than all of ortlearn

    if n_samples > MANY_SAMPLES:
        drawn = random_state.choice(n_samples, MANY_SAMPLES, replace=False)
        yield np.sort(drawn[MANY_SAMPLES // FOLDS :]), np.sort(drawn[: MANY_SAMPLES // FOLDS])
        return
    n_folds = min(FOLDS, n_samples)
    by_class = labels is not None and np.unique(labels, return_counts=True)[1].min() >= n_folds
    kind = StratifiedKFold if by_class else KFold
    parts = kind(n_folds, shuffle=True, random_state=random_state)
    yield from parts.split(np.zeros((n_samples, 1)), labels if by_class else None)


def choose(
    step: Any,
    parts: Iterator[tuple[Data, Data]],
    start: Weights,
    others: Mapping[str, Weights],
    settings: LoopSettings,
    measure: Measure,
) -> Candidate:
    """Return the training under which samples that are left out have the least loss.

    For each part, the objective plus ``pull / 2 * |u - u_start|^2`` is minimised for falling pulls, u the
    weights in the coordinates of :class:`~ortlearn.training.coordinates.Coordinates`, and the same from
    other weights, which may suit samples better that have little in common with those of the model. The
    strongest pull is taken that is as good as the best one but for a part of its standard error (as by
    the rule of one standard error: Breiman, L. et al., "Classification and regression trees", 1984,
    section 3.4.3).
    """
    max_iter = min(ITERATIONS, settings.max_iter)
    settings = replace(settings, max_iter=max_iter, watch=None, verbose=0, exc=False)
    candidates = [Candidate(pull) for pull in PULLS]
    candidates += [Candidate(pull, name) for name in others for pull in OTHER_PULLS[name]]
    found, shares = [], []
    for train, left_out in parts:
        values = [measure(start, left_out)]
        with quiet(ConvergenceWarning):
            values += _path(step, train, left_out, start, PULLS, settings, measure)
            for name, weights in others.items():
                center = standardised_weights(step, train, weights)
                values += _path(step, train, left_out, center, OTHER_PULLS[name], settings, measure)
        found.append(np.array(values, dtype=np.float64))
        shares.append(weights_of(left_out))
    best = best_of(np.concatenate(found, axis=1), np.concatenate(shares), [c.center for c in candidates])
    return Candidate(np.inf) if best is None else candidates[best]


def weights_of(data: Data) -> np.ndarray:
    """Return the weights of samples as float64."""
    return np.ones(len(data)) if data.row_weight is None else data.row_weight.astype(np.float64)


def trained(
    step: Any,
    train: Data,
    start: Weights,
    others: Mapping[str, Weights],
    settings: LoopSettings,
    candidate: Candidate,
) -> Weights:
    """Return the weights that a candidate leads to on some samples."""
    if np.isinf(candidate.pull):
        return start
    name, settings = candidate.center, replace(settings, watch=None, verbose=0, exc=False)
    center = standardised_weights(step, train, others[name]) if name in others else start
    with quiet(ConvergenceWarning):
        return run_full_batch(step, train, center, settings, pull=candidate.pull, toward=center).weights


def _path(
    step: Any,
    train: Data,
    left_out: Data,
    center: Weights,
    pulls: tuple[float, ...],
    settings: LoopSettings,
    measure: Measure,
) -> list[np.ndarray]:
    """Return what is measured of samples left out for each pull towards some weights."""
    measured, current = [], center
    for pull in pulls:
        current = run_full_batch(step, train, current, settings, pull=pull, toward=center).weights
        measured.append(measure(current, left_out))
    return measured


def best_of(losses: np.ndarray, weights: np.ndarray, kinds: Sequence[Any]) -> int | None:
    """Return the number of the best candidate; None where none is better than the start by enough.

    The first row of losses is that of the start; among candidates of a kind, the first ones are preferred.
    """
    share = weights / weights.sum()
    gains = losses[0] - losses[1:]
    means = gains @ share
    possible = np.isfinite(means) & (means > 0)
    if not possible.any():
        return None
    best = int(np.argmax(np.where(possible, means, -np.inf)))
    if means[best] <= EVIDENCE * _standard_error(gains[best], share):
        return None
    for number, kind in enumerate(kinds):
        lost = SLACK * _standard_error(gains[best] - gains[number], share)
        if kind == kinds[best] and possible[number] and means[best] - means[number] <= lost:
            return number
    return best


def _standard_error(differences: np.ndarray, share: np.ndarray) -> float:
    """Return the standard error of a weighted mean of differences; shares sum to one."""
    mean = float(share @ differences)
    n_effective = 1 / float(share @ share)
    variance = float(share @ (differences - mean) ** 2) / max(n_effective - 1, 1.0)
    return float(np.sqrt(variance)) if np.isfinite(variance) else np.inf
