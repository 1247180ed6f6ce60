"""Paired bootstrap intervals of the metrics of two models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .metrics import Metrics

__all__ = ["Bootstrap"]

#: Largest number of samples, which are in memory.
MOST = 1_000_000


@dataclass(frozen=True)
class Bootstrap:
    """Percentile intervals from resamples, drawn with replacement.

    Both models are measured on the same drawn samples, so that the interval of their difference does not
    include the variation that they share (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
    chapters 8 and 13).
    """

    resamples: int = 1000
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.resamples <= MOST:
            raise ValueError(f"--resamples {self.resamples}: must be between 2 and {MOST}.")
        if self.seed < 0:
            raise ValueError(f"--random-state {self.seed}: must be 0 or more.")
        if not 0 < self.level < 1:
            raise ValueError(f"--level {self.level}: must be between 0 and 1.")

    def compare(self, old: Metrics, new: Metrics, weights: np.ndarray) -> dict[str, dict]:
        """Return value and interval of each metric for both models, and for new minus old."""
        names = [name for name in old if name in new]
        drawn = self._draw([old[name] for name in names] + [new[name] for name in names], weights)
        result = {}
        for i, name in enumerate(names):
            values = {"old": old[name](weights), "new": new[name](weights)}
            values["difference"] = values["new"] - values["old"]
            samples = {"old": drawn[:, i], "new": drawn[:, len(names) + i]}
            samples["difference"] = samples["new"] - samples["old"]
            result[name] = {
                part: {"value": value, "interval": self._interval(samples[part])}
                for part, value in values.items()
            }
        return result

    def _draw(self, metrics: list, weights: np.ndarray) -> np.ndarray:
        """Return the value of each metric on each sample; nan if it is not defined."""
        rng, n_samples = np.random.default_rng(self.seed), len(weights)
        drawn = np.full((self.resamples, len(metrics)), np.nan)
        for i in range(self.resamples):
            counts = np.bincount(rng.integers(n_samples, size=n_samples), minlength=n_samples)
            sample = weights * counts
            if sample.sum() > 0:
                drawn[i] = [metric(sample) for metric in metrics]
        return drawn

    def _interval(self, values: np.ndarray) -> list[float] | None:
        """Return the percentiles; None if most samples have no value, or there are no samples."""
        values = values[np.isfinite(values)]
        if len(values) * 2 < self.resamples:
            return None
        outside = (1 - self.level) / 2
        return [float(bound) for bound in np.quantile(values, [outside, 1 - outside])]
