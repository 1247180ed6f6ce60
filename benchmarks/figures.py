"""Medians, spreads, ratios and slopes of rounds."""

from __future__ import annotations

import numpy as np

__all__ = ["is_resolved", "median", "number", "ratio", "slope", "spread"]


def is_resolved(values: list[float]) -> bool:
    """Tell whether a difference of two times came out above the noise, in every round."""
    return all(value > 0 for value in values)


def median(values: list[float]) -> float:
    """Return the middle of the rounds."""
    return float(np.median(values))


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the median of the ratios of each round, whose two halves met the same machine."""
    return median([a / b for a, b in zip(ours, theirs, strict=True)])


def number(value: float) -> str:
    """Return three digits, never with an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(values: list[float]) -> str:
    """Return the smallest and the largest round as text."""
    return f"{number(min(values))} to {number(max(values))}"


def slope(sizes: list[int], rounds: list[list[float]]) -> float:
    """Return the slope of the medians on a log-log scale, nan if a difference drowned in noise."""
    costs = [median(values) for values in rounds]
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0]) if is_resolved(costs) else float("nan")
