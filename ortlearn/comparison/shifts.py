"""The shift of scores with the lowest loss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["VALUES", "best_shift"]

#: Largest number of values at which losses are computed at once.
VALUES = 96


def best_shift(
    losses: Callable[[np.ndarray], np.ndarray], candidates: np.ndarray, weights: np.ndarray
) -> float:
    """Return the candidate with the lowest weighted loss, which has one minimum; 0 if there is only one.

    ``losses`` returns those of all samples at some candidates, of shape (n_samples, n_values). Of labels that
    are predicted, candidates are the residuals, where losses have their kinks: means of quantiles are near
    frequent labels, such as zeros of counts, and a small shift puts them on the right side.
    """
    shift, left = 0.0, np.unique(candidates)
    while len(left) > 1:
        taken = np.unique(np.linspace(0, len(left) - 1, min(len(left), VALUES)).astype(int))
        best = int((weights @ losses(left[taken])).argmin())
        shift = float(left[taken[best]])
        if len(taken) == len(left):
            break
        left = left[taken[max(best - 1, 0)] : taken[min(best + 1, len(taken) - 1)] + 1]
    return shift
