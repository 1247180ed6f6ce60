"""Small data sets with fixed seeds, and values that are exact in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

__all__ = ["DATA", "Samples", "load"]

N_SAMPLES = 90
N_COLUMNS = 4


class Samples(NamedTuple):
    """Features and labels; y is None without labels."""

    X: Any
    y: Any


def _numbers(seed: int = 0) -> tuple[np.random.Generator, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng, _exact(rng.normal(size=(N_SAMPLES, N_COLUMNS)))


def _exact(values: np.ndarray) -> np.ndarray:
    """Round to float32, so that no threshold is between a value and its rounding."""
    return values.astype(np.float32).astype(np.float64)


def _signal(rng: np.random.Generator, X: np.ndarray, n_outputs: int = 1) -> np.ndarray:
    """Return a smooth function of the columns with noise, of mean zero and variance one."""
    slopes = rng.normal(size=(X.shape[1], n_outputs))
    values = X @ slopes + 0.5 * np.sin(2 * X[:, :1]) + 0.3 * rng.normal(size=(len(X), n_outputs))
    return _exact((values - values.mean(axis=0)) / values.std(axis=0))


def regression() -> Samples:
    """One target."""
    rng, X = _numbers()
    return Samples(X, _signal(rng, X)[:, 0])


def regression_outputs() -> Samples:
    """Two targets."""
    rng, X = _numbers()
    return Samples(X, _signal(rng, X, 2))


def regression_above_zero() -> Samples:
    """One target above zero."""
    rng, X = _numbers()
    return Samples(X, _exact(np.exp(0.5 * _signal(rng, X)[:, 0])))


def one_column() -> Samples:
    """One target that mostly rises with the only column."""
    rng, X = _numbers()
    return Samples(X[:, :1], _exact(np.tanh(X[:, 0]) + 0.2 * rng.normal(size=N_SAMPLES)))


def binary() -> Samples:
    """Two classes that overlap."""
    rng, X = _numbers()
    return Samples(X, (rng.uniform(size=N_SAMPLES) < expit(2 * _signal(rng, X)[:, 0])).astype(np.int64))


def texts() -> Samples:
    """Two classes with names."""
    X, y = binary()
    return Samples(X, np.array(["no", "yes"])[y])


def classes() -> Samples:
    """Three classes that overlap."""
    rng, X = _numbers()
    return Samples(X, np.argmax(_signal(rng, X, 3) + 0.5 * rng.gumbel(size=(N_SAMPLES, 3)), axis=1))


def labels() -> Samples:
    """Three labels of a multilabel problem."""
    rng, X = _numbers()
    return Samples(X, (_signal(rng, X, 3) + 0.3 * rng.normal(size=(N_SAMPLES, 3)) > 0).astype(np.int64))


def two_labels() -> Samples:
    """Two labels of a multilabel problem, with as many columns as two classes have."""
    X, y = labels()
    return Samples(X, y[:, :2])


def _above_zero(given: Samples) -> Samples:
    return Samples(np.abs(given.X), given.y)


def _kernel(given: Samples) -> Samples:
    """Return the kernel matrix of all samples, as features."""
    squares = np.square(given.X[:, np.newaxis] - given.X).sum(axis=2)
    return Samples(_exact(np.exp(-0.2 * squares)), given.y)


def _few_values(given: Samples) -> Samples:
    """Return columns of three categories, numbered 0, 1, 2."""
    return Samples(np.digitize(given.X, [-0.5, 0.5]).astype(np.float64), given.y)


def _with_gaps(given: Samples) -> Samples:
    """Return columns in which one value of ten is missing."""
    X = given.X.copy()
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.1] = np.nan
    return Samples(X, given.y)


def counts() -> Samples:
    """Columns of counts, many of them zero."""
    rng, X = _numbers()
    return Samples(rng.poisson(np.exp(0.5 * X - 0.5)).astype(np.float64), _signal(rng, X)[:, 0])


def frame() -> Samples:
    """A frame with numbers, categories and texts; two classes."""
    import pandas

    rng, X = _numbers()
    kinds = rng.integers(0, 3, size=N_SAMPLES)
    words = np.array(["dry cold", "wet warm", "dry warm wind", "cold wind rain"])
    columns = {
        "age": X[:, 0].astype(np.float32),
        "size": X[:, 1].astype(np.float32),
        "kind": np.array(["a", "b", "c"])[kinds],
        "text": words[rng.integers(0, 4, size=N_SAMPLES)],
    }
    y = (X[:, 0] + kinds - 1 + 0.5 * rng.normal(size=N_SAMPLES) > 0).astype(np.int64)
    return Samples(pandas.DataFrame(columns), y)


def frame_outputs() -> Samples:
    """The same frame, two targets."""
    rng, X = _numbers()
    given = frame()
    return Samples(given.X, _signal(rng, X, 2))


def frame_classes() -> Samples:
    """The same frame, three classes."""
    X, y = frame_outputs()
    return Samples(X, np.digitize(y[:, 0], [-0.5, 0.5]))


def frame_with_categories() -> Samples:
    """A frame with numbers and categories, some of which are missing; one target."""
    X, y = frame_outputs()
    X = X[["age", "kind"]].astype({"kind": "category"})
    X.loc[::9, "kind"] = None
    return Samples(X, y[:, 0])


def many_categories() -> Samples:
    """Columns of numbers, the first two of 40 categories, some of which are missing; one target."""
    rng, X = _numbers()
    codes = rng.integers(0, 40, size=(N_SAMPLES, 2))
    X[:, :2] = np.where(codes == 7, np.nan, codes)
    return Samples(X, _exact(np.sin(codes[:, 0]) + 0.5 * X[:, 2]))


def sentences() -> Samples:
    """Texts of a few words; two classes."""
    given = frame()
    return Samples(given.X["text"].to_numpy(dtype=object), given.y)


def frame_gaps() -> Samples:
    """The same frame, with one of six numbers missing."""
    given = frame()
    missing = np.random.default_rng(2).uniform(size=(N_SAMPLES, 2)) < 1 / 6
    given.X[["age", "size"]] = given.X[["age", "size"]].mask(missing)
    return given


def words() -> Samples:
    """Two columns of texts; two classes."""
    given = frame()
    return Samples(given.X[["kind", "text"]].to_numpy(dtype=object), given.y)


#: Data sets by name.
DATA: dict[str, Callable[[], Samples]] = {
    "regression": regression,
    "regression_outputs": regression_outputs,
    "regression_above_zero": regression_above_zero,
    "one_column": one_column,
    "binary": binary,
    "texts": texts,
    "classes": classes,
    "labels": labels,
    "two_labels": two_labels,
    "binary_positive": lambda: _above_zero(binary()),
    "classes_positive": lambda: _above_zero(classes()),
    "regression_positive": lambda: _above_zero(regression()),
    "binary_kernel": lambda: _kernel(binary()),
    "classes_kernel": lambda: _kernel(classes()),
    "regression_kernel": lambda: _kernel(regression()),
    "binary_categories": lambda: _few_values(binary()),
    "classes_categories": lambda: _few_values(classes()),
    "regression_gaps": lambda: _with_gaps(regression()),
    "counts": counts,
    "frame": frame,
    "frame_gaps": frame_gaps,
    "frame_classes": frame_classes,
    "frame_outputs": frame_outputs,
    "frame_with_categories": frame_with_categories,
    "frame_target": lambda: Samples(frame().X, frame_outputs().y[:, 0]),
    "many_categories": many_categories,
    "sentences": sentences,
    "words": words,
}


def load(name: str) -> Samples:
    """Return a data set."""
    return DATA[name]()
