"""partial_fit of ensembles of trees on four streams, against refits on a window and river's forests.

``python -m benchmarks.forests.streams --write`` needs the package river for the last column.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import accuracy_score, r2_score

from benchmarks.machine import describe
from benchmarks.shards.report import write_block
from benchmarks.tables import table
from ortlearn import OrtGradientOptimizer

PAGE = Path(__file__).parents[2] / "docs/explanation/forests.md"
BATCH, N_BATCHES, WINDOW = 100, 25, 1000


def _switching(rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(BATCH * N_BATCHES, 6))
    old = np.arange(len(X)) < len(X) // 2
    score = np.where(old, X[:, 0] + X[:, 1], X[:, 3] - X[:, 4])
    return X, (score + 0.2 * rng.logistic(size=len(X)) > 0).astype(int)


def _rotating(rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(BATCH * N_BATCHES, 6))
    angle = np.linspace(0, np.pi / 2, len(X))
    score = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle)
    return X, (score + 0.3 * rng.normal(size=len(X)) > 0).astype(int)


def _stationary(rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    return make_friedman1(BATCH * N_BATCHES, noise=1.0, random_state=rng)


def _moving(rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_friedman1(BATCH * N_BATCHES, noise=1.0, random_state=rng)
    return X, np.where(np.arange(len(X)) < len(X) // 2, y, 20 - y)


STREAMS: dict[str, Callable[[np.random.RandomState], tuple[np.ndarray, np.ndarray]]] = {
    "concept changes at once": _switching,
    "concept rotates": _rotating,
    "friedman1, stationary": _stationary,
    "friedman1, sign changes": _moving,
}
MODELS = {
    True: [RandomForestClassifier(100, random_state=0), HistGradientBoostingClassifier(random_state=0)],
    False: [RandomForestRegressor(100, random_state=0), HistGradientBoostingRegressor(random_state=0)],
}


def size_of(model: Any) -> int:
    """Return the number of trees."""
    return len(model.estimators_) if hasattr(model, "estimators_") else len(model._predictors)


def ours(model: Any, batches: list[Any], score: Any) -> dict[str, float]:
    """Return scores, seconds per batch and the largest number of trees of ``partial_fit``."""
    trainer, scores, seconds, sizes = OrtGradientOptimizer(model, random_state=0), [], [], []
    for number, (X, y) in enumerate(batches):
        if number:
            scores.append(score(y, trainer.predict(X)))
        begin = time.perf_counter()
        trainer.partial_fit(X, y)
        seconds.append(time.perf_counter() - begin)
        sizes.append(size_of(trainer.to_sklearn()))
    return {"score": np.mean(scores), "seconds": np.mean(seconds[1:]), "size": max(sizes), "first": sizes[0]}


def refits(model: Any, batches: list[Any], score: Any) -> dict[str, float]:
    """Return scores and seconds per batch of refits on the last samples."""
    scores, seconds = [], []
    X_seen, y_seen = (np.concatenate([batch[i] for batch in batches]) for i in (0, 1))
    for number in range(1, len(batches)):
        window, begin = slice(max(0, number * BATCH - WINDOW), number * BATCH), time.perf_counter()
        fitted = clone(model).fit(X_seen[window], y_seen[window])
        seconds.append(time.perf_counter() - begin)
        scores.append(score(batches[number][1], fitted.predict(batches[number][0])))
    return {"score": np.mean(scores), "seconds": np.mean(seconds)}


def of_river(classifies: bool, batches: list[Any], score: Any) -> dict[str, float]:
    """Return scores and seconds per batch of river's adaptive random forest of ten trees."""
    from river import forest

    model = forest.ARFClassifier(seed=0) if classifies else forest.ARFRegressor(seed=0)
    scores, seconds = [], []
    for number, (X, y) in enumerate(batches):
        samples = [dict(enumerate(sample.tolist())) for sample in X]
        if number:
            scores.append(score(y, np.array([model.predict_one(sample) or 0 for sample in samples])))
        begin = time.perf_counter()
        for sample, label in zip(samples, y.tolist(), strict=True):
            model.learn_one(sample, label)
        seconds.append(time.perf_counter() - begin)
    return {"score": np.mean(scores), "seconds": np.mean(seconds)}


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the name of a stream")
    parser.add_argument("--no-river", action="store_true")
    parser.add_argument("--write", action="store_true", help="write the page")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    header = [
        "stream",
        "model",
        "partial_fit",
        "refits on a window",
        "river",
        "seconds per batch: partial_fit",
    ]
    header += ["refit", "river", "trees: first", "most"]
    lines = []
    for name, make in STREAMS.items():
        if arguments.only not in name:
            continue
        X, y = make(np.random.RandomState(1))
        batches = [(X[i : i + BATCH], y[i : i + BATCH]) for i in range(0, len(X), BATCH)]
        classifies = y.dtype.kind == "i"
        score = accuracy_score if classifies else r2_score
        nothing = {"score": np.nan, "seconds": np.nan}
        other = nothing if arguments.no_river else of_river(classifies, batches, score)
        for model in MODELS[classifies]:
            assert is_classifier(model) == classifies
            own, refit = ours(model, batches, score), refits(model, batches, score)
            tools = (own, refit, other)
            line = [name, type(model).__name__, *(f"{tool['score']:.3f}" for tool in tools)]
            line += [f"{tool['seconds']:.2f}" for tool in tools] + [str(own["first"]), str(own["size"])]
            print(line, flush=True)
            lines.append(line)
    text = fill(
        f"Mean scores (accuracy, R2) of the last {N_BATCHES - 1} batches of {BATCH} samples, before they are "
        f"learnt; a window of {WINDOW:,} samples for refits; one thread, {describe()}.",
        120,
    )
    text += f"\n\n{table(header, lines, left=2)}"
    print(text)
    if arguments.write:
        write_block(PAGE, "streams", f"\n{text}")


if __name__ == "__main__":
    main()
