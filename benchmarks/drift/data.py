"""Data before and after a drift.

Three kinds of drift, each on generated samples and on the images of digits:

- covariate: features come from elsewhere, classes depend on them as before
- concept: classes depend on features in another way
- share: classes have other shares, and each looks as before
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

__all__ = ["DRIFTS", "SIZES", "Drifted", "drifted"]

DRIFTS = ("covariate", "concept", "share")
#: Numbers of new samples, by source of the data.
SIZES = {"generated": (50, 300, 2000), "digits": (50, 300)}
#: What makes generated features raw: different units and offsets.
UNITS = np.array([1.0, 0.01, 300.0, 10.0, 1.0, 50.0, 2.0, 1000.0])
OFFSETS = np.array([0.0, 1.0, 2000.0, 40.0, 0.0, -100.0, 0.0, 500.0])
#: Generated samples of a test, so many that a difference of 0.01 is one.
N_TEST = 10_000


@dataclass
class Drifted:
    """Samples from before a drift, and from after it.

    Attributes
    ----------
    X_old, y_old : ndarray
        Samples from before.
    draws : list of tuple
        ``(X_new, y_new, X_test, y_test)`` from after, several times; cases take the first new samples.
    """

    X_old: np.ndarray
    y_old: np.ndarray
    draws: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]


def drifted(source: str, drift: str, seed: int, n_draws: int) -> Drifted:
    """Return data with a drift.

    Parameters
    ----------
    source : {"generated", "digits"}
        Where the samples come from.
    drift : {"covariate", "concept", "share"}
        Kind of drift.
    seed : int
        Draws samples and noise.
    n_draws : int
        How often new samples are drawn.
    """
    rng = np.random.default_rng(seed)
    return (_generated if source == "generated" else _digits)(drift, rng, n_draws)


def _generated(drift: str, rng: np.random.Generator, n_draws: int) -> Drifted:
    """Eight features, two classes; 2,000 samples of each part."""

    def draw(n: int, drift: str = ""):
        X = rng.normal(size=(n, 8))
        weights = [1.5, -1.0, 0.8, 0.0]
        if drift == "covariate":
            X[:, [0, 2, 4]] += 1.0, 1.5, 1.0
        if drift == "concept":
            weights = [0.5, -1.0, 0.8, 1.2]
        # A product and a square, so that no linear model is right everywhere.
        score = X[:, :4] @ weights + 0.7 * X[:, 2] * X[:, 4] + 0.4 * X[:, 5] ** 2 - 0.4
        y = (score + rng.logistic(scale=0.4, size=n) > 0).astype(int)
        return UNITS * X + OFFSETS, y

    def after(n: int):
        if drift != "share":
            return draw(n, drift)
        X, y = draw(4 * n)
        kept = np.flatnonzero((y == 0) | (rng.uniform(size=4 * n) < 0.15))[:n]
        return X[kept], y[kept]

    old, test = draw(2000), after(N_TEST)
    return Drifted(*old, [(*after(2000), *test) for _ in range(n_draws)])


def _digits(drift: str, rng: np.random.Generator, n_draws: int) -> Drifted:
    """Images of ten digits; 700 old ones, 300 new ones, the others for the test."""
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    old, after = slice(0, 700), slice(700, None)
    X_old, y_old, X_after, y_after = X[old], y[old], X[after], y[after]
    if drift == "covariate":  # a scanner of low contrast, with noise
        X_after = np.clip(0.5 * X_after + rng.normal(4, 1.5, X_after.shape), 0, 16)
    if drift == "concept":  # digits are sorted into bins by pairs; then two digits move to other bins
        y_old, y_after = y_old // 2, y_after // 2
        y_after[y[after] == 3], y_after[y[after] == 6] = 0, 4
    if drift == "share":  # digits below five become four times rarer
        kept = (y_after >= 5) | (rng.uniform(size=len(y_after)) < 0.25)
        X_after, y_after = X_after[kept], y_after[kept]
    orders = (rng.permutation(len(y_after)) for _ in range(n_draws))
    draws = [(X_after[o[:300]], y_after[o[:300]], X_after[o[300:]], y_after[o[300:]]) for o in orders]
    return Drifted(X_old, y_old, draws)
