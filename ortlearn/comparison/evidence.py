"""The rule of evidence: which candidate is kept, given losses of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["best_of", "bounded", "standard_error"]

#: Standard errors by which the loss may increase for an earlier candidate of the same family.
SLACK = 0.25
#: Weight of the uniform distribution that is mixed into probabilities to compare classifiers.
CHANCE = 0.05


def bounded(losses: np.ndarray) -> np.ndarray:
    """Return classification losses, bounded by the loss of a probability of 5 %.

    A log loss becomes the log loss of the probabilities mixed with a uniform distribution. Without a bound,
    a few samples that are misclassified with confidence decide the comparison.
    """
    with np.errstate(over="ignore"):  # log losses of densities may be far below zero
        return -np.log(CHANCE + (1 - CHANCE) * np.exp(-losses.astype(np.float64)))


def best_of(
    losses: np.ndarray, weights: np.ndarray, families: Sequence[object], evidence: float
) -> int | None:
    """Return the index of the best candidate, or None to keep what the first row of losses belongs to.

    The best candidate must improve on the first row by more than ``evidence`` standard errors; with a
    negative number, it may be worse by fewer than these. Within a family, the first candidate is preferred
    whose loss exceeds the lowest one by less than a fraction of the standard error (a variant of the
    one-standard-error rule: Breiman, L. et al., "Classification and regression trees", 1984, section 3.4.3).
    """
    share = weights / weights.sum()
    with np.errstate(invalid="ignore"):  # infinite losses of both
        gains = losses[0] - losses[1:]
        means = gains @ share
    possible = np.isfinite(losses[1:] @ share) & (means > (0 if evidence >= 0 else -np.inf))
    if not possible.any():
        return None
    best = int(np.argmax(np.where(possible, means, -np.inf)))
    if means[best] <= evidence * standard_error(gains[best], share):
        return None
    for number in range(best):
        margin = SLACK * standard_error(gains[best] - gains[number], share)
        same = families[number] == families[best] and possible[number]
        if same and means[best] - means[number] <= margin:
            return number
    return best


def standard_error(differences: np.ndarray, share: np.ndarray) -> float:
    """Return the standard error of a weighted mean of float64 values; the weights sum to one."""
    mean = float(share @ differences)
    if not np.isfinite(mean):
        return np.inf
    n_effective = 1 / float(share @ share)
    variance = float(share @ (differences - mean) ** 2) / max(n_effective - 1, 1.0)
    return float(np.sqrt(variance)) if np.isfinite(variance) else np.inf
