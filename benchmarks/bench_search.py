"""Compare searches that train candidates in one graph with those of scikit-learn.

27 candidates of a Ridge, a logistic regression and a network 100-50-10-1, three folds, one thread. The
searches alternate, and the best round counts, in processor time: ``python -m benchmarks.bench_search`` (some
minutes).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV
from sklearn.neural_network import MLPRegressor

from benchmarks.measures.programs import Sheet, print_sheets
from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.penalties import L2Penalty
from ortlearn.search import OrtGridSearchCV, OrtHalvingGridSearchCV

__all__ = ["CASES", "Measured", "SearchCase", "measure", "sheets"]

#: Grids of 27 candidates each.
GRIDS = {
    "rates and penalties": {
        "learning_rate__eta0": np.geomspace(1e-4, 1e-2, 9).tolist(),
        "learning_penalty__l2": [1e-4, 1e-3, 1e-2],
    },
    "rates, penalties and seeds": {
        "learning_rate__eta0": [1e-4, 1e-3, 1e-2],
        "learning_penalty__l2": [1e-4, 1e-3, 1e-2],
        "random_state": [0, 1, 2],
    },
}


@dataclass(frozen=True)
class SearchCase:
    """Model and data of a search.

    Attributes
    ----------
    title : str
        Name in the table.
    model : estimator
        Model.
    n_samples, features, batch_size : int
        Size of the data, and of a batch.
    rate : BaseLearningRate
        Update.
    classes : bool
        Whether labels are two classes.
    """

    title: str
    model: Any
    n_samples: int
    features: int
    batch_size: int
    rate: Any
    classes: bool = False

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Return features and labels with noise."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((self.n_samples, self.features), dtype=np.float32)
        y = X @ rng.normal(size=self.features)
        y = y / y.std() + rng.normal(size=self.n_samples)
        return X, (y > 0).astype(int) if self.classes else y.astype(np.float32)


def _network() -> MLPRegressor:
    return MLPRegressor(hidden_layer_sizes=(50, 10))


CASES = (
    SearchCase("Ridge, SGD", Ridge(), 4_000, 10, 10, LearningRateSGD(learning_rate="constant")),
    SearchCase(
        "logistic regression, SGD",
        LogisticRegression(),
        10_000,
        100,
        64,
        LearningRateSGD(learning_rate="constant"),
        True,
    ),
    SearchCase("100-50-10-1, SGD", _network(), 1_005, 100, 15, LearningRateSGD(learning_rate="constant")),
    SearchCase(
        "100-50-10-1, momentum", _network(), 1_005, 100, 15, LearningRateSGDNesterov(learning_rate="constant")
    ),
    SearchCase("100-50-10-1, Adam", _network(), 1_005, 100, 15, LearningRateAdam()),
)


@dataclass(frozen=True)
class Measured:
    """Seconds of both searches, largest difference of a mean score, and whether the best one is the same."""

    alone: float
    together: float
    difference: float
    same_best: bool

    @property
    def ratio(self) -> float:
        """Share of the time of scikit-learn's search."""
        return self.together / self.alone


def measure(
    case: SearchCase, grid: dict[str, list], rounds: int, max_iter: int = 20, halving: bool = False
) -> Measured:
    """Run both searches alternately.

    Parameters
    ----------
    case : SearchCase
        Model and data.
    grid : dict of str to list
        Parameter grid.
    rounds : int
        Number of rounds.
    max_iter : int, default=20
        Number of epochs of a training.
    halving : bool, default=False
        Whether to compare OrtHalvingGridSearchCV with HalvingGridSearchCV, by epochs.

    Returns
    -------
    Measured
        Minima over the rounds, since other programs can only increase times.
    """
    X, y = case.data()
    trainer = OrtGradientOptimizer(
        case.model,
        learning_rate=case.rate,
        learning_penalty=L2Penalty(),
        batch_size=case.batch_size,
        max_iter=max_iter,
        random_state=0,
    )
    classes, options = [GridSearchCV, OrtGridSearchCV], {}
    if halving:
        classes = [HalvingGridSearchCV, OrtHalvingGridSearchCV]
        options = {"resource": "max_iter", "max_resources": max_iter}
    seconds: list[list[float]] = [[], []]
    searches = []
    for _ in range(rounds):
        searches = [search_class(trainer, grid, cv=3, **options) for search_class in classes]
        for search, found in zip(searches, seconds, strict=True):
            begun = time.process_time()
            search.fit(X, y)
            found.append(time.process_time() - begun)
    alone, together = (search.cv_results_["mean_test_score"] for search in searches)
    same = searches[0].best_params_ == searches[1].best_params_
    return Measured(*map(min, seconds), float(np.abs(alone - together).max()), same)


def _halving(quick: bool) -> Sheet:
    """Return the table of successive halving."""
    rows, figures = [], {}
    for case in CASES[:1] if quick else CASES:
        small, epochs, grid = case, 54, GRIDS["rates and penalties"]
        if quick:
            small = replace(case, n_samples=60, features=4)
            epochs, grid = 9, {"learning_rate__eta0": [0.01, 0.1, 1.0]}
        found = measure(small, grid, 1 if quick else 3, epochs, halving=True)
        figures[f"{case.title}, halving"] = found.ratio
        same = "yes" if found.same_best else "no"
        rows.append([case.title, f"{found.alone:.2f}", f"{found.together:.2f}", f"{found.ratio:.2f}", same])
    header = [
        "27 candidates, 3 folds",
        "HalvingGridSearchCV, s",
        "OrtHalvingGridSearchCV, s",
        "ratio",
        "same best",
    ]
    text = (
        "Successive halving of the same candidates: 2, 6, 18 and 54 epochs of 27, 9, 3 and 1. "
        "OrtHalvingGridSearchCV continues each training where HalvingGridSearchCV begins anew."
    )
    return Sheet(text, header, rows, figures, left=1)


def sheets(quick: bool) -> list[Sheet]:
    """Return the tables of all cases; if ``quick``, of the first ones on few samples."""
    rows, figures = [], {}
    for case in CASES[:2] if quick else CASES:
        for name, grid in GRIDS.items():
            if quick:
                found = measure(replace(case, n_samples=60, features=4), grid, 1, max_iter=2)
            else:
                found = measure(case, grid, 3)
            figures[f"{case.title}, {name}"] = found.ratio
            rows.append(
                [case.title, name, f"{found.alone:.2f}", f"{found.together:.2f}", f"{found.ratio:.2f}"]
            )
    header = ["27 candidates, 3 folds", "grid", "GridSearchCV, s", "OrtGridSearchCV, s", "ratio"]
    text = "Searches whose candidates are trained together in one graph, compared with GridSearchCV."
    return [Sheet(text, header, rows, figures, left=2), _halving(quick)]


if __name__ == "__main__":
    print_sheets(__doc__, sheets)
