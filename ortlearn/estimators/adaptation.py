"""Training from a model's own weights, held back as far as samples that are left out ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..quiet import quiet
from ..training import Data, LoopSettings
from ..training.solver_loop import run_full_batch, standardised_weights

__all__ = ["Candidate", "choose", "folds"]

#: Pulls towards the start that are tried, in curvatures of the objective at the start; first the strongest.
PULLS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0)
#: The same towards other weights than the start.
OTHER_PULLS = {"fresh": (0.3, 0.03, 0.003), "restandardised": (10.0, 1.0, 0.1)}
#: Iterations of a solver for each of them, from the weights of the one before.
ITERATIONS = 20
#: Parts that samples are cut into, each left out once; of many samples, so many are drawn, and one part of
#: them is left out.
FOLDS, MANY_SAMPLES = 5, 5_000
#: Standard errors by which losses must fall before the start is left, and by which they may rise for a
#: stronger pull.
EVIDENCE, SLACK = 1.0, 0.25

Weights = dict[str, np.ndarray]
#: Takes weights and samples; returns the loss of each, and whether its class is mistaken, of shape (2, n).
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
    """

    pull: float
    center: str = "start"


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
    section 3.4.3). No training is taken that makes more mistakes than the start: the loss need not be what
    the model was fitted for.

    Parameters
    ----------
    step : FullBatchStep
        Objective and gradient.
    parts : iterator of (Data, Data)
        Samples to train on, and samples that are left out.
    start : dict of str to ndarray
        Starting weights.
    others : dict of str to (dict of str to ndarray)
        Other weights to begin with, for standardised features, by the name of a center.
    settings : LoopSettings
        Settings of the training.
    measure : callable
        Measures weights on samples.

    Returns
    -------
    Candidate
        Training.
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
        own = left_out.row_weight
        shares.append(np.ones(len(left_out)) if own is None else own.astype(np.float64))
    losses, mistakes = np.concatenate(found, axis=2).transpose(1, 0, 2)
    share = np.concatenate(shares) / sum(map(np.sum, shares))
    return _best(candidates, losses, mistakes, share)


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


def _best(
    candidates: list[Candidate], losses: np.ndarray, mistakes: np.ndarray, share: np.ndarray
) -> Candidate:
    """Return the best candidate; the first rows of losses and mistakes are those of the start."""
    gains, means = losses[0] - losses[1:], (losses[0] - losses[1:]) @ share
    fewer = (mistakes[0] - mistakes[1:]) @ share
    possible = np.isfinite(means) & (means > 0) & (fewer >= 0)
    if not possible.any():
        return Candidate(np.inf)
    best = int(np.argmax(np.where(possible, means, -np.inf)))
    by_loss = means[best] > EVIDENCE * _standard_error(gains[best], share)
    by_mistakes = fewer[best] > EVIDENCE * _standard_error(mistakes[0] - mistakes[1 + best], share)
    if not (by_loss or by_mistakes):
        return Candidate(np.inf)
    for number, candidate in enumerate(candidates):
        lost = SLACK * _standard_error(gains[best] - gains[number], share)
        if (
            candidate.center == candidates[best].center
            and possible[number]
            and means[best] - means[number] <= lost
        ):
            return candidate
    return candidates[best]


def _standard_error(differences: np.ndarray, share: np.ndarray) -> float:
    """Return the standard error of a weighted mean of differences; shares sum to one."""
    mean = float(share @ differences)
    n_effective = 1 / float(share @ share)
    variance = float(share @ (differences - mean) ** 2) / max(n_effective - 1, 1.0)
    return float(np.sqrt(variance)) if np.isfinite(variance) else np.inf
