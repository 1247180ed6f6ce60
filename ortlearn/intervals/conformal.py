"""Ranks and constants of split conformal calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

__all__ = [
    "checked_coverage",
    "checked_levels",
    "conformal_quantile",
    "level_quantiles",
    "needed",
    "rank",
]

#: Rounding error of a product of a count and a level.
ROUNDING = 1e-9


def rank(n: int, level: float) -> int:
    """Return the rank ``ceil((n + 1) * level)`` of a conformal quantile among n scores."""
    return math.ceil((n + 1) * level - ROUNDING)


def needed(coverage: float) -> int:
    """Return the smallest number of calibration samples for a coverage, 9 for 0.9."""
    return math.ceil(coverage / (1 - coverage) - ROUNDING)


def conformal_quantile(scores: np.ndarray, coverage: float) -> float:
    """Return the conformal quantile of scores; infinity if there are too few (Vovk et al. 2005)."""
    position = rank(len(scores), coverage)
    index = max(position, 1) - 1
    return math.inf if position > len(scores) else float(np.partition(scores, index)[index])


def level_quantiles(residuals: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the quantile of each column of residuals at its level; extreme ranks are clipped."""
    n = len(residuals)
    ordered = np.sort(residuals, axis=0)
    ranks = [min(max(rank(n, float(level)), 1), n) - 1 for level in levels]
    return ordered[ranks, np.arange(len(levels))]


def checked_coverage(coverage: Any) -> float:
    """Return a coverage as a float; raise a ValueError unless it is between 0 and 1."""
    if isinstance(coverage, Real) and not isinstance(coverage, bool) and 0 < float(coverage) < 1:
        return float(coverage)
    raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1, such as 0.9.")


def checked_levels(levels: Any) -> np.ndarray:
    """Return levels of quantiles as floats; raise a ValueError unless they rise between 0 and 1."""
    values = levels if isinstance(levels, Sequence | np.ndarray) and not isinstance(levels, str) else [levels]
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros((0, 0))
    if found.ndim != 1 or not found.size or not np.all((found > 0) & (found < 1)):
        raise ValueError(f"levels={levels!r} must be numbers between 0 and 1, such as [0.05, 0.5, 0.95].")
    if np.any(np.diff(found) <= 0):
        raise ValueError(f"levels={levels!r} must rise, each level once: pass {np.unique(found).tolist()}.")
    return found
