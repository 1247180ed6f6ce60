"""Data sets of the table: scikit-learn's own ones, and generated ones with common difficulties."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
    make_classification,
    make_friedman1,
    make_regression,
)
from sklearn.model_selection import train_test_split

__all__ = ["DATASETS", "split"]


def diabetes():
    """Ages, pressures and blood values in their own units."""
    return load_diabetes(return_X_y=True, scaled=False)


def friedman():
    """A smooth function of five of ten uniform features."""
    return make_friedman1(400, noise=1.0, random_state=0)


def thousands():
    """Features of scales from one to thousands, far from zero."""
    X, y = make_regression(300, 8, n_informative=5, noise=10.0, random_state=0)
    return X * 10.0 ** np.linspace(0, 3.5, 8) + 2000, y


def prices():
    """Prices of houses in hundreds of thousands, by area, rooms, age and distance."""
    rng = np.random.default_rng(0)
    area, rooms = rng.normal(110, 30, 400).clip(30), rng.integers(1, 7, 400)
    age, distance = rng.uniform(0, 80, 400), rng.exponential(8, 400)
    price = 2500 * area + 8000 * rooms - 700 * age - 3000 * distance + 60_000
    return np.column_stack([area, rooms, age, distance]), price + rng.normal(0, 15_000, 400)


def few_samples():
    """Forty samples of five features."""
    return make_regression(40, 5, noise=20.0, random_state=0)


def counts():
    """Numbers of events, Poisson."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=500), rng.uniform(0, 4, 500), rng.normal(20, 5, 500)])
    return X, rng.poisson(np.exp(0.4 * X[:, 0] + 0.5 * X[:, 1] - 0.05 * X[:, 2] + 1)).astype(float)


def skewed():
    """Positive amounts in hundreds with a long right tail, Gamma."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=500), rng.uniform(0, 2, 500), rng.normal(40, 12, 500)])
    mean = np.exp(0.5 * X[:, 0] + 0.6 * X[:, 1] + 0.02 * X[:, 2] + 4)
    return X, rng.gamma(2.0, mean / 2.0)


def heavy_tails():
    """Features and noise from Student's t with three degrees of freedom."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (400, 6))
    return X, X @ np.array([3.0, -2, 1, 0, 0, 0.5]) + 5 + rng.standard_t(3, 400)


def linnerud():
    """Twenty samples, three outputs."""
    return load_linnerud(return_X_y=True)


def breast_cancer():
    """Two classes, thirty features of scales from 0.01 to 1,000."""
    return load_breast_cancer(return_X_y=True)


def wine():
    """Three classes, one feature in the hundreds."""
    return load_wine(return_X_y=True)


def iris():
    """Three classes, four features."""
    return load_iris(return_X_y=True)


def digits():
    """Ten classes, pixels from 0 to 16."""
    X, y = load_digits(return_X_y=True)
    return X[:700], y[:700]


def many_samples():
    """Five thousand samples of two classes."""
    return make_classification(5000, 20, n_informative=6, random_state=0)


def few_labels():
    """Forty samples of two classes, named."""
    X, y = make_classification(40, 6, n_informative=3, class_sep=1.5, random_state=0)
    return 50 * X, np.array(["no", "yes"])[y]


def rare_class():
    """One class in twelve, features from Student's t."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (600, 6))
    return X, (X @ np.array([2.0, -1, 1, 0, 0, 0]) + rng.normal(size=600) > 5).astype(int)


_ALL: tuple[Callable, ...] = (
    diabetes,
    friedman,
    thousands,
    prices,
    few_samples,
    counts,
    skewed,
    heavy_tails,
    linnerud,
    breast_cancer,
    wine,
    iris,
    digits,
    many_samples,
    few_labels,
    rare_class,
)
#: Functions that return X and y, by name.
DATASETS = {function.__name__: function for function in _ALL}


def split(name: str):
    """Return X_train, X_test, y_train, y_test of a data set: 70 to 30, classes in their shares."""
    X, y = DATASETS[name]()
    is_regression = np.asarray(y).dtype.kind == "f"
    return train_test_split(X, y, test_size=0.3, random_state=0, stratify=None if is_regression else y)
