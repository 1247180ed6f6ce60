"""One task, several tools: the tables of docs/howto/which_tool.md.

``python -m benchmarks.which_tool --write`` measures scikit-learn, torch, skorch and ortlearn on four tasks
with one thread (about five minutes, in the environment of ``make bench``). Scores are means and seconds are
medians over five draws of the data; the tools take turns.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import copy
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import accuracy_score, mean_pinball_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from skorch import NeuralNet

from benchmarks.drift.data import drifted
from benchmarks.machine import describe, versions
from benchmarks.tables import table
from ortlearn import OrtGradientOptimizer
from ortlearn.losses import QuantileLoss

PAGE = Path(__file__).parents[1] / "docs/howto/which_tool.md"
BEGIN, END = "<!-- begin: measured cases -->", "<!-- end: measured cases -->"
SEEDS = (1, 2, 3, 4, 5)
OURS, PARTIAL, REFIT = (
    "ortlearn, warm start",
    "scikit-learn `partial_fit`, 50 epochs",
    "scikit-learn refit on new",
)
OLD, BOTH = "old model", "scikit-learn refit on old and new"
#: Models that partial_fit, torch and skorch cannot train further.
OTHERS = (
    LogisticRegression(max_iter=2000),
    GradientBoostingClassifier(random_state=0),
    SVC(),
    RandomForestClassifier(random_state=0),
)
#: A training of a tool on one draw, which returns the score of its result; by the name of the tool.
Tools = dict[str, Callable[[], float]]


def layers(model: Any, n_inputs: int, n_outputs: int, hidden: tuple[int, ...]) -> torch.nn.Sequential:
    """Return the torch module of a network, with the weights of a fitted one unless model is None."""
    sizes = [n_inputs, *hidden, n_outputs]
    parts: list[torch.nn.Module] = []
    for i, (before, after) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        linear = torch.nn.Linear(before, after)
        if model is not None:
            linear.weight.data = torch.tensor(model.coefs_[i].T, dtype=torch.float32)
            linear.bias.data = torch.tensor(model.intercepts_[i], dtype=torch.float32)
        parts += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])


def tensors(X: np.ndarray, y: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Return samples in float32 and labels as the losses of torch take them."""
    kind = torch.int64 if y.dtype.kind in "iu" else torch.float32
    targets = torch.tensor(y, dtype=kind)
    return torch.tensor(X, dtype=torch.float32), targets if kind == torch.int64 else targets.reshape(-1, 1)


def by_torch(module: torch.nn.Module, loss: Any, X, y, epochs: int, batch: int) -> Callable:
    """Train by Adam in a plain loop over batches, and return a function that predicts."""
    inputs, targets = tensors(X, y)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    for _ in range(epochs):
        for numbers in torch.randperm(len(inputs)).split(batch):
            optimizer.zero_grad()
            loss(module(inputs[numbers]), targets[numbers]).backward()
            optimizer.step()
    return lambda samples: module(torch.tensor(samples, dtype=torch.float32)).detach().numpy()


def by_skorch(module: torch.nn.Module, loss: Any, X, y, epochs: int, batch: int) -> Callable:
    """Train the same by skorch."""
    options = {"optimizer": torch.optim.Adam, "lr": 1e-3, "train_split": None, "verbose": 0}
    net = NeuralNet(
        module, criterion=loss, max_epochs=epochs, batch_size=batch, iterator_train__shuffle=True, **options
    )
    net.fit(*tensors(X, y))
    return lambda samples: net.predict(samples.astype(np.float32))


def both_torches(start: Callable, loss: Any, data, epochs: int, batch: int, score: Callable) -> Tools:
    """Return torch and skorch from the same weights."""
    X, y, X_test, y_test = data
    kinds = {"torch": by_torch, "skorch": by_skorch}

    def training(train: Callable) -> Callable[[], float]:
        return lambda: score(y_test, train(start(), loss, X, y, epochs, batch)(X_test))

    return {f"{name}, {epochs} epochs": training(train) for name, train in kinds.items()}


def best_class(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the accuracy of the largest scores."""
    return accuracy_score(labels, scores.argmax(axis=1))


def pale_digits(seed: int) -> Tools:
    """A network that reads digits, and few labelled images of another scanner."""
    X_old, X, y_old, y = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
    model = MLPClassifier(random_state=0).fit(X_old, y_old)
    X_new, X_test, y_new, y_test = train_test_split(
        6 + X / 2, y, train_size=50, stratify=y, random_state=seed
    )

    def partial() -> float:
        further = copy.deepcopy(model)
        for _ in range(50):
            further.partial_fit(X_new, y_new)
        return further.score(X_test, y_test)

    all_X, all_y = np.r_[X_old, X_new], np.r_[y_old, y_new]
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    return {
        OLD: lambda: model.score(X_test, y_test),
        REFIT: lambda: MLPClassifier(random_state=0).fit(X_new, y_new).score(X_test, y_test),
        BOTH: lambda: MLPClassifier(random_state=0).fit(all_X, all_y).score(X_test, y_test),
        PARTIAL: partial,
        **both_torches(
            lambda: layers(model, 64, 10, (100,)),
            torch.nn.CrossEntropyLoss(),
            (X_new, y_new, X_test, y_test),
            50,
            50,
            best_class,
        ),
        OURS: lambda: trainer.fit(X_new, y_new).score(X_test, y_test),
    }


def drifted_boosting(seed: int) -> Tools:
    """Histogram boosting after the classes have changed their meaning, 300 new samples."""
    data = drifted("generated", "concept", seed, 1)
    X_new, y_new, X_test, y_test = data.draws[0]
    X_new, y_new = X_new[:300], y_new[:300]
    model = HistGradientBoostingClassifier(random_state=0).fit(data.X_old, data.y_old)
    all_X, all_y = np.r_[data.X_old, X_new], np.r_[data.y_old, y_new]
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    refit = HistGradientBoostingClassifier(random_state=0)
    return {
        OLD: lambda: model.score(X_test, y_test),
        REFIT: lambda: refit.fit(X_new, y_new).score(X_test, y_test),
        BOTH: lambda: refit.fit(all_X, all_y).score(X_test, y_test),
        OURS: lambda: trainer.fit(X_new, y_new).score(X_test, y_test),
    }


def quantile_network(seed: int) -> Tools:
    """A network for the 0.9 quantile, whose loss MLPRegressor does not have; lower scores are better."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (6000, 3))
    y = np.sin(2 * X[:, 0]) + (0.2 + 0.4 * abs(X[:, 1])) * rng.standard_normal(6000)
    X, X_test, y, y_test = X[:2000], X[2000:], y[:2000], y[2000:]

    def score(labels: np.ndarray, found: np.ndarray) -> float:
        return mean_pinball_loss(labels, found.ravel(), alpha=0.9)

    def pinball(found: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.maximum(0.9 * (labels - found), 0.1 * (found - labels)).mean()

    class Pinball(torch.nn.Module):
        """The same, as skorch takes it."""

        forward = staticmethod(pinball)

    squared = MLPRegressor(hidden_layer_sizes=(50,), batch_size=32, max_iter=100, tol=0, random_state=seed)
    trainer = OrtGradientOptimizer(
        squared,
        learning_loss=QuantileLoss(0.9),
        learning_rate="Adam",
        batch_size=32,
        max_iter=100,
        random_state=seed,
    )
    return {
        "scikit-learn MLPRegressor, squared error": lambda: score(y_test, squared.fit(X, y).predict(X_test)),
        **both_torches(lambda: layers(None, 3, 1, (50,)), Pinball(), (X, y, X_test, y_test), 100, 32, score),
        "ortlearn, 100 epochs": lambda: score(y_test, trainer.fit(X, y).predict(X_test)),
    }


def many_samples(seed: int) -> Tools:
    """A linear classifier on 100,000 samples of 50 features, to its optimum or in epochs."""
    X, y = make_classification(120_000, 50, n_informative=30, random_state=seed)
    X, X_test, y, y_test = X[:100_000], X[100_000:], y[:100_000], y[100_000:]
    scaled = make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0))
    trainer = OrtGradientOptimizer(LogisticRegression(), random_state=0)
    return {
        "scikit-learn LogisticRegression": lambda: LogisticRegression().fit(X, y).score(X_test, y_test),
        "scikit-learn SGDClassifier": lambda: scaled.fit(X, y).score(X_test, y_test),
        **both_torches(
            lambda: layers(None, 50, 2, ()),
            torch.nn.CrossEntropyLoss(),
            (X, y, X_test, y_test),
            5,
            256,
            best_class,
        ),
        "ortlearn": lambda: trainer.fit(X, y).score(X_test, y_test),
    }


def other_models() -> str:
    """Return a table of other models on the pale digits: one line each, means over fewer draws."""
    X_old, X, y_old, y = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
    rows = []
    for model in OTHERS:
        old, scores = clone(model).fit(X_old, y_old), []
        for seed in SEEDS[:3]:
            X_new, X_test, y_new, y_test = train_test_split(
                6 + X / 2, y, train_size=50, stratify=y, random_state=seed
            )
            refits = (X_new, y_new), (np.r_[X_old, X_new], np.r_[y_old, y_new])
            warm = OrtGradientOptimizer(old, warm_start=True, random_state=0).fit(X_new, y_new)
            fitted = [old, *(clone(model).fit(*data) for data in refits), warm]
            scores.append([one.score(X_test, y_test) for one in fitted])
        rows.append([type(model).__name__, *(f"{value:.3f}" for value in np.mean(scores, 0))])
    return table(["model", OLD, "refit on new", "refit on old and new", OURS], rows)


#: Tasks by their titles, and the name of their score.
TASKS: dict[str, tuple[Callable[[int], Tools], str]] = {
    "Adapt a network: digits of a paler scanner, 50 labelled images": (pale_digits, "accuracy"),
    "Adapt gradient boosting: a new concept, 300 labelled samples": (drifted_boosting, "accuracy"),
    "Change the loss: a network for the 0.9 quantile": (quantile_network, "pinball loss"),
    "Fit a linear classifier: 100,000 samples, 50 features": (many_samples, "accuracy"),
}


def measure(make: Callable[[int], Tools]) -> dict[str, tuple[float, float]]:
    """Return mean score and median seconds of each tool; the first training warms up and is not counted."""
    found: dict[str, list[tuple[float, float]]] = {}
    for name, train in make(SEEDS[0]).items():
        train()
        found[name] = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        for name, train in make(seed).items():
            begun = time.perf_counter()
            score = train()
            found[name].append((score, time.perf_counter() - begun))
    return {name: (np.mean(pairs, 0)[0], np.median(pairs, 0)[1]) for name, pairs in found.items()}


def sections() -> Iterator[str]:
    """Yield the measured part of the page."""
    names = ("Python", "scikit-learn", "torch", "skorch", "onnxruntime-training-cpu")
    yield f"{describe()}; " + ", ".join(f"{name} {versions()[name]}" for name in names) + "; one thread.\n"
    for title, (make, score) in TASKS.items():
        cells = [
            [name, f"{value:.3f}", "" if name == OLD else f"{seconds:.2g}"]
            for name, (value, seconds) in measure(make).items()
        ]
        yield f"### {title}\n\n" + table(["tool", score, "seconds"], cells)
    yield "### Other models on the digits of the first task, accuracy\n\n" + other_models()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page's tables")
    write = parser.parse_args().write
    warnings.simplefilter("ignore")
    text = "\n".join(sections())
    print(text)
    if write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        page = f"{before}{BEGIN}\n\n{text}\n{END}{rest.partition(END)[2]}"
        PAGE.write_text(page, encoding="utf-8")
