"""Data sets: three of scikit-learn, and eight that are generated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from sklearn import datasets

Samples = tuple[np.ndarray, np.ndarray]


def _real(load: Callable, target: int | None) -> Samples:
    """Return all samples of a data set, with one of its columns as label if it has classes."""
    X, y = load(return_X_y=True)
    return (X, y.astype(float)) if target is None else (np.delete(X, target, axis=1), X[:, target])


def _features(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(n, 6))


def heteroscedastic(n: int, rng: np.random.Generator) -> Samples:
    """Return labels whose spread depends on a feature."""
    X = _features(n, rng)
    return X, 2 * X[:, 0] + X[:, 1] ** 2 + np.exp(0.7 * X[:, 2]) * rng.normal(size=n)


def skewed(n: int, rng: np.random.Generator) -> Samples:
    """Return labels with noise of a gamma distribution."""
    X = _features(n, rng)
    return X, X[:, 0] + X[:, 1] * X[:, 2] + rng.gamma(1.0, np.exp(0.5 * X[:, 3]), size=n)


def discrete(n: int, rng: np.random.Generator) -> Samples:
    """Return counts."""
    X = _features(n, rng)
    return X, rng.poisson(np.exp(0.4 * X[:, 0] + 0.3 * X[:, 1] + 0.5)).astype(float)


def heavy_tailed(n: int, rng: np.random.Generator) -> Samples:
    """Return labels with noise of Student's t distribution with two degrees of freedom."""
    X = _features(n, rng)
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.standard_t(2, size=n)


def linear(n: int, rng: np.random.Generator) -> Samples:
    """Return labels of a linear model with normal noise."""
    X = _features(n, rng)
    return X, X @ np.array([2.0, -1.0, 0.5, 0.0, 0.0, 1.0]) + rng.normal(size=n)


def friedman(make: Callable, noise: float) -> Callable[[int, np.random.Generator], Samples]:
    """Return the generator of one of Friedman's functions."""
    return lambda n, rng: make(n, noise=noise, random_state=int(rng.integers(2**31)))


#: Number of training and calibration samples, and of samples in all.
SIZES = (400, 200, 1000)
GENERATED = {
    "heteroscedastic": (heteroscedastic, SIZES),
    "skewed": (skewed, SIZES),
    "discrete": (discrete, SIZES),
    "heavy tails": (heavy_tailed, SIZES),
    "linear": (linear, SIZES),
    "friedman1": (friedman(datasets.make_friedman1, 1.0), SIZES),
    "friedman2": (friedman(datasets.make_friedman2, 100.0), SIZES),
    "tiny": (heteroscedastic, (30, 20, 500)),
}
REAL = {
    "diabetes": (datasets.load_diabetes, None),
    "wine": (datasets.load_wine, 0),
    "cancer": (datasets.load_breast_cancer, 4),
}
NAMES = (*REAL, *GENERATED)


def split(name: str, seed: int) -> tuple[Samples, Samples, int]:
    """Return training samples, the pool of the other ones, and the number of calibration samples."""
    rng = np.random.default_rng([seed, NAMES.index(name)])
    if name in GENERATED:
        generate, (n_train, n_cal, n) = GENERATED[name]
        X, y = generate(n, rng)
    else:
        X, y = _real(*REAL[name])
        n_train, n_cal = len(y) // 2, len(y) // 4
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    y = (y - y[:n_train].mean()) / y[:n_train].std()  # networks of scikit-learn do not scale labels
    return (X[:n_train], y[:n_train]), (X[n_train:], y[n_train:]), n_cal


def draws(n: int, n_cal: int, count: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield indices of calibration and test samples of a pool of n."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        order = rng.permutation(n)
        yield order[:n_cal], order[n_cal:]
