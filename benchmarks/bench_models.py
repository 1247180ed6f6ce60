"""Compare training of whole models with scikit-learn's ``fit``: ``python -m benchmarks.bench_models``.

Measures scikit-learn's ``fit``, a warm start with one epoch (including conversion, differentiation and
compilation), one more epoch, and ``to_sklearn``; one thread, the best of several rounds.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from benchmarks.measures.programs import Sheet, print_sheets
from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateSGD

__all__ = ["MODELS", "Times", "measure", "sheets"]


#: Epochs after the first that are measured.
MORE = 3


@dataclass(frozen=True)
class Times:
    """Seconds of scikit-learn's fit, the first epoch of a warm start, one more epoch, and to_sklearn."""

    own: float
    first: float
    epoch: float
    back: float


def numbers(n_samples: int, n_features: int, n_classes: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels; labels are classes if ``n_classes`` is not 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features), dtype=np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(n_samples, dtype=np.float32) / 2
    edges = np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]) if n_classes else []
    return X, np.digitize(y, edges) if n_classes else y


def documents(n_documents: int, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """Return documents of 80 words, drawn by Zipf's law, and two classes that depend on some words."""
    rng = np.random.default_rng(0)
    frequency = 1 / np.arange(1, n_words + 1)
    drawn = rng.choice(n_words, size=(n_documents, 80), p=frequency / frequency.sum())
    drawn[:, 0] = np.resize(np.arange(n_words), n_documents)  # each word is in at least one document
    drawn[:, 1] = np.resize(np.arange(n_words)[::-1], n_documents)
    classes = (drawn % 7 == 0).sum(axis=1) > np.median((drawn % 7 == 0).sum(axis=1))
    return np.array([" ".join(f"word{number}" for number in line) for line in drawn]), classes.astype(int)


#: Models, and functions that return their data; the argument asks for small data.
MODELS: dict[str, tuple[Any, Callable[[bool], tuple[np.ndarray, np.ndarray]]]] = {
    "Ridge, 500 x 20": (Ridge(), lambda quick: numbers(500, 20)),
    "RandomForestRegressor, 100 trees of depth 12, 10,000 x 20": (
        RandomForestRegressor(max_depth=12, random_state=0),
        lambda quick: numbers(200 if quick else 10_000, 20),
    ),
    "RandomForestClassifier, 100 trees of depth 12, 10,000 x 20": (
        RandomForestClassifier(max_depth=12, random_state=0),
        lambda quick: numbers(200 if quick else 10_000, 20, 3),
    ),
    "GradientBoostingRegressor, 100 trees, 10,000 x 20": (
        GradientBoostingRegressor(random_state=0),
        lambda quick: numbers(200 if quick else 10_000, 20),
    ),
    "TfidfVectorizer, LogisticRegression, 10,000 documents, 20,000 words": (
        make_pipeline(TfidfVectorizer(), LogisticRegression()),
        lambda quick: documents(*((50, 100) if quick else (10_000, 20_000))),
    ),
}


def seconds_of(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and its result."""
    begin = time.perf_counter()
    found = function()
    return time.perf_counter() - begin, found


def measure(model: Any, X: np.ndarray, y: np.ndarray, rounds: int) -> Times:
    """Return the minimum of several rounds, since other programs can only increase times."""
    rows = []
    for _ in range(rounds):
        own, fitted = seconds_of(partial(model.fit, X, y))
        options = {"warm_start": True, "keep_better": False, "random_state": 0}
        options["learning_rate"] = LearningRateSGD(1e-4)  # slow enough for the leaves of all trees at once
        short, long = (OrtGradientOptimizer(fitted, max_iter=count, **options) for count in (1, 1 + MORE))
        first, trainer = seconds_of(partial(short.fit, X, y))
        longer, _ = seconds_of(partial(long.fit, X, y))
        back, _ = seconds_of(trainer.to_sklearn)
        rows.append((own, first, max(longer - first, 0.0) / MORE, back))
    return Times(*np.min(rows, axis=0).tolist())


def sheets(quick: bool) -> list[Sheet]:
    """Measure every model, and return the table.

    Parameters
    ----------
    quick : bool
        Whether to use small data and one round.
    """
    warnings.simplefilter("ignore")
    measure(Ridge(), *numbers(50, 3), 1)  # imports modules that are loaded on first use
    rows, figures = [], {}
    for name, (model, make) in MODELS.items():
        found = measure(model, *make(quick), 1 if quick else 3)
        ratios = [part / found.own for part in (found.first, found.epoch, found.back)]
        own = [f"{1e3 * part:,.3g}" for part in (found.own, found.first)]
        rows.append([name, *own, *(f"{value:.2f}" for value in ratios)])
        figures |= {f"{name}: first epoch / fit": ratios[0], f"{name}: to_sklearn / fit": ratios[2]}
        figures[f"{name}: seconds to the first epoch"] = found.first
    header = [
        "model",
        "scikit-learn fit, ms",
        "warm start and first epoch, ms",
        "/ fit",
        "one more epoch / fit",
        "to_sklearn / fit",
    ]
    text = (
        "Times of a warm start up to the end of its first epoch (with conversion, differentiation and "
        "compilation), of one more epoch, and of `to_sklearn`, compared with the fit of scikit-learn."
    )
    return [Sheet(text, header, rows, figures)]


if __name__ == "__main__":
    print_sheets(__doc__, sheets)
