"""Data sets of regression problems: generated ones, and those that scikit-learn and statsmodels contain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman3

__all__ = ["DATA", "SEEN", "split"]

Samples = tuple[np.ndarray, np.ndarray]
TRAINING, TEST = 1000, 2000  # largest numbers of samples


def _scaled_noise(seed: int) -> Samples:
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1, 1, (3000, 6))
    return X, 2 * X[:, 0] + np.sin(4 * X[:, 1]) + (0.2 + np.abs(X[:, 2])) * rng.standard_t(5, 3000)


def _skewed(seed: int) -> Samples:
    rng = np.random.RandomState(seed)
    X = rng.uniform(0, 1, (3000, 5))
    return X, np.exp(X[:, 0] + 0.8 * X[:, 1] * rng.normal(size=3000))


def _waits(seed: int) -> Samples:
    rng = np.random.RandomState(seed)
    X = rng.uniform(0, 1, (3000, 8))
    return X, rng.gamma(1 + 3 * X[:, 0], 1 + np.sin(6 * X[:, 1]) ** 2)


def _of_statsmodels(name: str) -> Callable[[int], Samples]:
    def load(seed: int) -> Samples:
        import statsmodels.datasets as datasets

        found = getattr(datasets, name).load_pandas()
        return found.exog.to_numpy(np.float64), found.endog.to_numpy(np.float64)

    return load


DATA: dict[str, Callable[[int], Samples]] = {
    "friedman1": lambda seed: make_friedman1(3000, noise=1.0, random_state=seed),
    "noise of varying scale": _scaled_noise,
    "skewed noise": _skewed,
    "diabetes": lambda seed: load_diabetes(return_X_y=True),
    "friedman3": lambda seed: make_friedman3(3000, noise=0.1, random_state=seed),
    "waiting times": _waits,
    "affairs": _of_statsmodels("fair"),
    "visits": _of_statsmodels("randhie"),
}
#: Data sets that were used while the rule was chosen.
SEEN = ("friedman1", "noise of varying scale", "skewed noise", "diabetes")


def split(name: str, seed: int) -> tuple[Samples, Samples]:
    """Return training and test samples."""
    X, y = DATA[name](seed)
    order = np.random.RandomState(seed).permutation(len(y))
    n_training = min(TRAINING, int(0.7 * len(y)))
    training, test = order[:n_training], order[n_training : n_training + TEST]
    return (X[training], y[training]), (X[test], y[test])
