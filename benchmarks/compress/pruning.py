"""Half of the units and channels of networks, and two thirds of the trees or leaves of forests."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_friedman1
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.compress import quantisation
from ortlearn.compress import prune

TITLES = ("model", "before", "after", "lost", "most lost", "what is left", "bytes of the file")
SPLITS = 3


def cases() -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """Return unfitted models, samples and options by name."""
    digits, tumours = load_digits(return_X_y=True), load_breast_cancer(return_X_y=True)
    network = make_pipeline(StandardScaler(), MLPClassifier((256, 128), max_iter=60, random_state=0))
    forest = RandomForestClassifier(300, random_state=0)
    numbers = make_friedman1(3000, noise=1.0, random_state=0)
    return {
        "MLP, digits": (network, digits, {"sparsity": 0.5}),
        "forest, digits": (forest, digits, {"sparsity": 2 / 3}),
        "forest, breast cancer": (forest, tumours, {"sparsity": 2 / 3}),
        "forest, friedman1": (RandomForestRegressor(300, random_state=0), numbers, {"sparsity": 2 / 3}),
        "leaves of a forest, digits": (forest, digits, {"sparsity": 2 / 3, "leaves": True}),
    }


def rows() -> list[tuple[str, ...]]:
    """Return the rows of the table: means over splits, except for the convolution, which has one."""
    table = []
    for name, (model, (X, y), options) in cases().items():
        found = []
        for seed in range(SPLITS):
            X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed)
            model.fit(X_train, y_train)
            found.append(prune(model, X_train, y_train, held_out=(X_test, y_test), **options))
        table.append(_row(name, found))
    model, X, y, X_test, y_test = quantisation.convolution(16, 32)
    table.append(_row("convolution, digits", [prune(model, X, y, sparsity=0.5, held_out=(X_test, y_test))]))
    return table


def _row(name: str, found: list) -> tuple[str, ...]:
    """Return the row of a model."""
    values = [[one.scores[one.metric][side]["value"] for side in ("old", "new")] for one in found]
    before, after = np.mean(values, axis=0)
    row = (
        name,
        *(f"{value:.4f}" for value in (before, after)),
        *(f"{value:+.4f}" for value in (before - after, max(one.loss for one in found))),
        *(f"{what}: {change}" for what, change in found[0].layers.items()),
        f"{np.mean([one.n_bytes['new'] / one.n_bytes['old'] for one in found]):.2f}",
    )
    print(row, flush=True)
    return row
