"""Medians, spreads, ratios and slopes of rounds."""

from __future__ import annotations

import numpy as np

__all__ = ["is_resolved", "median", "number", "ratio", "slope", "spread"]


def is_resolved(values: list[float]) -> bool:
    """Return whether a difference of times is positive in all rounds."""
    return all(value > 0 for value in values)


def median(values: list[float]) -> float:
    """Return the median of the rounds."""
    return float(np.median(values))


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the median of the ratios per round, whose two times were measured together."""
    return median([a / b for a, b in zip(ours, theirs, strict=True)])


def number(value: float) -> str:
    """Return a number with three digits, without exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(values: list[float]) -> str:
    """Return the smallest and the largest round as text."""
    return f"{number(min(values))} to {number(max(values))}"


def slope(sizes: list[int], rounds: list[list[float]]) -> float:
    """Return the slope of the medians on a log-log scale, nan if a difference is not above the noise."""
    costs = [median(values) for values in rounds]
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0]) if is_resolved(costs) else float("nan")
