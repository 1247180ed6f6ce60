"""The rule of evidence: which candidate is kept, given losses of samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.exceptions import ConvergenceWarning

from ..quiet import quiet
from .candidates import Candidate, KeptStart, Setting
from .measures import Measure

__all__ = ["Choice", "best_of", "bounded", "choose", "improves"]

#: Standard errors by which the loss may increase for an earlier candidate of the same family.
SLACK = 0.25
#: Standard errors by which the loss of a candidate exceeds the lowest one when it is no longer compared.
HOPELESS = 3.0
#: Weight of the uniform distribution that is mixed into probabilities to compare classifiers.
CHANCE = 0.05
#: Fewer effective samples than the first number require an improvement by the second quantile of Student's t:
#: one of them often decides on their mean, and the best of several candidates profits from it.
FEW, CERTAIN = 30, 0.999
TINY = np.finfo(np.float64).tiny


def bounded(losses: np.ndarray) -> np.ndarray:
    """Return classification losses, bounded by the loss of a probability of 5 %.

    A log loss becomes the log loss of the probabilities mixed with a uniform distribution. Without a bound,
    a few samples that are misclassified with confidence decide the comparison.
    """
    with np.errstate(over="ignore"):  # log losses of densities may be far below zero
        return -np.log(CHANCE + (1 - CHANCE) * np.exp(-losses.astype(np.float64)))


def improves(gain: float, error: float = 0.0, evidence: float = 0.0) -> bool:
    """Return whether a decrease of a mean loss is evidence of an improvement: the rule of all comparisons.

    It must exceed ``evidence`` of its standard errors, or be positive. With a negative number of them, the
    loss may be higher by fewer than these.
    """
    return bool(gain > (evidence * error if evidence else 0.0))


def best_of(
    losses: np.ndarray, weights: np.ndarray, families: Sequence[object], evidence: float
) -> int | None:
    """Return the index of the best candidate, or None to keep what the first row of losses belongs to.

    The best candidate must improve on the first row by more than ``evidence`` standard errors; with a
    negative number, it may be worse by fewer than these. Within a family, the first candidate is preferred
    whose loss exceeds the lowest one by less than a fraction of the standard error (a variant of the
    one-standard-error rule: Breiman, L. et al., "Classification and regression trees", 1984, section 3.4.3).
    """
    if not weights.any():
        return None
    weights = weights / weights.sum()
    with np.errstate(invalid="ignore"):  # infinite losses of both, or of samples without weight
        gains = losses[0] - losses[1:]
        means, is_finite = gains @ weights, np.isfinite(losses[1:] @ weights)
    possible = is_finite & (means > (0 if evidence >= 0 else -np.inf))
    if not possible.any():
        return None
    best = int(np.argmax(np.where(possible, means, -np.inf)))
    if not improves(means[best], _standard_error(gains[best], weights), evidence):
        return None
    for number in range(best):
        if families[number] == families[best] and possible[number]:
            margin = SLACK * _standard_error(gains[best] - gains[number], weights)
            if means[best] - means[number] <= margin:
                return number
    return best


def _standard_error(differences: np.ndarray, weights: np.ndarray) -> float:
    """Return the standard error of a weighted mean of float64 values; the weights sum to one."""
    mean = float(weights @ differences)
    if not np.isfinite(mean):
        return np.inf
    n_effective = 1 / float(weights @ weights)
    variance = float(weights @ (differences - mean) ** 2) / max(n_effective - 1, 1.0)
    return float(np.sqrt(variance)) if np.isfinite(variance) else np.inf


@dataclass(frozen=True)
class Choice:
    """Result of a comparison."""

    candidate: Candidate
    # Mean losses in the last round: of what was kept before, then of the candidates; infinite if left out.
    means: np.ndarray


def choose(setting: Setting, measure: Measure, rounds: Iterable[Sequence[Candidate]]) -> Choice:
    """Return the candidate that the rule of evidence keeps, the start if no other is shown to be better.

    The candidates of each round, which require the same evidence, are compared with the one that is kept
    after the rounds before. Candidates that are clearly worse on the first parts are not trained on others.
    """
    choice = Choice(KeptStart(), np.zeros(0))
    start = setting.start.weights
    first = scores = [(measure.scores(start, own), measure.errors(start, own)) for _, own in measure.parts()]
    for others in filter(None, rounds):
        candidates = [candidate.upon(choice.candidate) for candidate in others]
        choice, scores = _round(setting, measure, choice.candidate, candidates, first, scores)
    return choice


def _round(
    setting: Setting,
    measure: Measure,
    kept: Candidate,
    candidates: Sequence[Candidate],
    first: Sequence[tuple[Any, Any]],
    scores: Sequence[tuple[Any, Any]],
) -> tuple[Choice, list[tuple[Any, Any]]]:
    """Return the choice of a round, and scores and errors of the chosen candidate for each part.

    ``first`` are those of the start, ``scores`` those of the candidate that is kept so far.
    """
    tried, losses, weights, errors, of_start = [], [], [], [], []
    left = np.ones(len(candidates) + 1, dtype=bool)
    known = zip(measure.parts(), first, scores, strict=True)
    for parts, (begun, _), before in islice(known, candidates[0].n_parts):
        rows, wrong, previous, kind = [before[0]], [before[1]], None, None
        with quiet(ConvergenceWarning):
            for number, candidate in enumerate(candidates, start=1):
                if not left[number]:
                    rows.append(None)
                    wrong.append(before[1])
                    continue
                previous, kind = (previous if type(candidate) is kind else None), type(candidate)
                own, previous = candidate.tried(setting, measure, parts, before[0], previous)
                rows.append(own)
                found = None if before[1] is None else candidate.errors(measure, parts[1], previous)
                wrong.append(before[1] if found is None else found)
        tried.append(list(zip(rows, wrong, strict=True)))
        weights.append(measure.weights(parts[1]))
        none = np.full(len(weights[-1]), np.inf)
        measured = [none if own is None else measure.losses(own, parts[1]) for own in rows]
        losses.append(np.array(measured, dtype=np.float64))
        of_start.append(measured[0] if isinstance(kept, KeptStart) else measure.losses(begun, parts[1]))
        errors.append(wrong)
        if before[1] is None:
            so_far = np.concatenate(losses, axis=1)
            left = _left(bounded(so_far) if measure.bounds else so_far, np.concatenate(weights))
        if not left[1:].any():
            break
    whole, of_samples = np.concatenate(losses, axis=1), np.concatenate(weights)
    table = bounded(whole) if measure.bounds else whole
    if errors[0][0] is not None:  # candidates with more errors than the one kept are excluded
        wrong_samples = np.concatenate(errors, axis=1)
        rates = wrong_samples @ of_samples
        table[rates > rates[0]] = np.inf
        table = wrong_samples.astype(np.float64) if measure.by_errors else table
    if measure.keeps_losses:  # a bound hides probabilities that are near zero
        with np.errstate(invalid="ignore"):
            means, most = whole @ of_samples, np.concatenate(of_start) @ of_samples
        table[means > max(means[0], most)] = np.inf
    share = min(candidates[0].n_parts or len(scores), len(scores)) / len(scores)
    evidence = _of_few(candidates[0].requires(setting), of_samples, share)
    if not isinstance(kept, KeptStart):  # evidence protects the start, which is known to be worse
        evidence = min(evidence, candidates[0].later)
    best = best_of(table, of_samples, [candidate.family for candidate in candidates], evidence)
    chosen = kept if best is None else candidates[best]
    number = 0 if best is None else best + 1
    with np.errstate(invalid="ignore"):  # infinite losses of samples without weight
        means = table @ (of_samples / of_samples.sum())
    return Choice(chosen, means), [rows[number] for rows in tried] if number else list(scores)


def _of_few(evidence: float, weights: np.ndarray, share: float) -> float:
    """Return the standard errors that an improvement requires, more if there are few samples.

    ``weights`` are those of a share of the samples.
    """
    n_effective = weights.sum() ** 2 / max(float(weights @ weights), TINY)
    if evidence <= 0 or n_effective >= FEW * share:
        return evidence
    return max(evidence, float(stdtrit(max(n_effective - 1, 1.0), CERTAIN)))


def _left(losses: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return which rows may still have the lowest mean loss, after some of the samples.

    As in Maron, O. and Moore, A. W., "The racing algorithm", Artificial Intelligence Review 11 (1997),
    193-225, with standard errors of paired differences.
    """
    if not weights.any():
        return np.ones(len(losses), dtype=bool)
    weights = weights / weights.sum()
    with np.errstate(invalid="ignore"):  # infinite losses of samples without weight
        means = losses @ weights
    is_finite = np.isfinite(means)
    best = losses[np.argmin(np.where(is_finite, means, np.inf))]
    for row in np.flatnonzero(is_finite):
        away = losses[row] - best
        is_finite[row] = not improves(away @ weights, _standard_error(away, weights), HOPELESS)
    return is_finite
