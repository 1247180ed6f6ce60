"""Data sets: four that defaults were chosen with, and others; the splits and the drift of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.model_selection import train_test_split

__all__ = ["CHOSEN", "DATASETS", "Parts", "available", "is_classification", "parts"]

#: Largest numbers of samples of the first fit, of new samples, and of samples of a test.
N_TRAIN, N_NEW, N_TEST = 200, 100, 300
#: Data sets that defaults were chosen with; the others were not used for any decision.
CHOSEN = ("cancer", "wine", "diabetes", "friedman1")


def cancer():
    """Two classes, thirty features."""
    return load_breast_cancer(return_X_y=True)


def wine():
    """Three classes, thirteen features."""
    return load_wine(return_X_y=True)


def diabetes():
    """Ten features in their own units."""
    return load_diabetes(return_X_y=True, scaled=False)


def friedman1():
    """A smooth function of five of ten features, with noise; above zero."""
    X, y = make_friedman1(600, noise=1.0, random_state=0)
    return X, np.maximum(y, 0.5)


def friedman2():
    """A product of features with scales from one to hundreds, with noise; above zero."""
    X, y = make_friedman2(600, noise=100.0, random_state=1)
    return X, np.maximum(y, 1.0)


def friedman3():
    """An arctangent of the same features, with noise; above zero."""
    X, y = make_friedman3(600, noise=0.1, random_state=2)
    return X, np.maximum(y, 0.01)


def noisy():
    """Three classes, of which one label in six is wrong."""
    X, y = make_classification(
        600, 12, n_informative=5, n_classes=3, flip_y=0.25, class_sep=1.2, random_state=3
    )
    return 20.0 * X - X.min(axis=0) * 20.0, y


def iris():
    """Three classes, four features."""
    return load_iris(return_X_y=True)


def digits():
    """Ten classes, 64 pixels from 0 to 16."""
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600]


def votes():
    """Two classes, eight features: the vote in the American election of 1996 (statsmodels)."""
    from statsmodels.datasets import anes96

    data = anes96.load_pandas().data
    columns = ["popul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "educ", "income"]
    return data[columns].to_numpy(dtype=np.float64), data["vote"].to_numpy(dtype=np.int64)


def engel():
    """Food expenditure by income of households, one feature (statsmodels)."""
    from statsmodels.datasets import engel as source

    data = source.load_pandas().data
    return data[["income"]].to_numpy(), data["foodexp"].to_numpy()


def cars():
    """Miles per gallon by five features (vega_datasets)."""
    from vega_datasets import local_data

    columns = ["Cylinders", "Displacement", "Horsepower", "Weight_in_lbs", "Acceleration"]
    data = local_data.cars()[[*columns, "Miles_per_Gallon"]].dropna()
    return data[columns].to_numpy(dtype=np.float64), data["Miles_per_Gallon"].to_numpy(dtype=np.float64)


_ALL: tuple[Callable, ...] = (
    *(cancer, wine, diabetes, friedman1),
    *(friedman2, friedman3, noisy, iris, digits, votes, engel, cars),
)
#: Functions that return X and y, by name.
DATASETS = {function.__name__: function for function in _ALL}
#: Packages whose wheels contain a data set.
PACKAGES = {"votes": "statsmodels", "engel": "statsmodels", "cars": "vega_datasets"}


def available() -> list[str]:
    """Return the names of the data sets whose packages are installed."""
    return [name for name in DATASETS if name not in PACKAGES or find_spec(PACKAGES[name])]


def is_classification(name: str) -> bool:
    """Return whether labels are classes."""
    return name in ("cancer", "wine", "noisy", "iris", "digits", "votes")


@dataclass(frozen=True)
class Parts:
    """Samples of a split, each a pair of X and y.

    Attributes
    ----------
    train, new, test : tuple of ndarray
        Samples of the first fit, new ones of the same kind, and those of the test.
    drifted, drifted_test : tuple of ndarray
        The new ones and those of the test after a drift.
    """

    train: tuple
    new: tuple
    test: tuple
    drifted: tuple
    drifted_test: tuple


def parts(name: str, seed: int, several: bool = False) -> Parts:
    """Return a split of a data set.

    Parameters
    ----------
    name : str
        Data set.
    seed : int
        Draws the split.
    several : bool, default=False
        Whether y has two columns.
    """
    X, y = DATASETS[name]()
    by_class = is_classification(name)
    rest, test, y_rest, y_test = _split(X, y, min(N_TEST, len(X) // 3), seed, by_class)
    n_new = min(N_NEW, len(rest) // 3)
    train, new, y_train, y_new = _split(rest, y_rest, n_new, seed, by_class)
    train, y_train = train[:N_TRAIN], y_train[:N_TRAIN]
    pairs = [(train, y_train), (new, y_new), (test, y_test)]
    drifted = [_drifted(*pair, train, y_train, by_class) for pair in pairs[1:]]
    if several:
        known = np.unique(y), np.median(y)
        pairs, drifted = (
            [(own, _columns(of, *known, by_class)) for own, of in some] for some in (pairs, drifted)
        )
    return Parts(*pairs, *drifted)


def _split(X, y, size, seed, by_class):
    return train_test_split(X, y, test_size=size, random_state=seed, stratify=y if by_class else None)


def _drifted(X, y, X_train, y_train, by_class):
    """Return samples after a drift of every second feature, and of the relation with the first one."""
    moved, first = X.copy(), (X[:, 0] - X_train[:, 0].mean()) / (X_train[:, 0].std() or 1.0)
    moved[:, ::2] += 0.7 * X_train.std(axis=0)[::2]
    if by_class:
        classes = np.unique(y_train)
        following = classes[(np.searchsorted(classes, y) + 1) % len(classes)]
        return moved, np.where(first > 0.8, following, y)
    return moved, np.maximum(y + 0.6 * y_train.std() * np.tanh(first), y_train.min())


def _columns(y, classes, median, by_class):
    """Return labels of two columns: of two classes each, or numbers."""
    if by_class:
        return np.column_stack([y == classes[0], y == classes[-1]]).astype(np.int64)
    return np.column_stack([y, np.abs(y - median)])
