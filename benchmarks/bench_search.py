"""Compare OrtGridSearchCV, which trains candidates in one graph, with GridSearchCV.

27 candidates of a Ridge, a logistic regression and a network 100-50-10-1, three folds, one thread. The
searches alternate, and the best round counts: ``python -m benchmarks.bench_search`` (some minutes).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor

from benchmarks.measures.programs import Sheet
from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.penalties import L2Penalty
from ortlearn.search import OrtGridSearchCV

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
    rows, features, batch_size : int
        Size of the data, and of a batch.
    rate : BaseLearningRate
        Update.
    classes : bool
        Whether labels are two classes.
    """

    title: str
    model: Any
    rows: int
    features: int
    batch_size: int
    rate: Any
    classes: bool = False

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Return features and labels with noise."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((self.rows, self.features), dtype=np.float32)
        y = X @ rng.normal(size=self.features)
        y = y / y.std() + rng.normal(size=self.rows)
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
    """Seconds of both searches, and the largest difference of a mean score."""

    alone: float
    together: float
    difference: float

    @property
    def ratio(self) -> float:
        """Share of GridSearchCV's time."""
        return self.together / self.alone


def measure(case: SearchCase, grid: dict[str, list], rounds: int, max_iter: int = 20) -> Measured:
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
    seconds: dict[type, list[float]] = {GridSearchCV: [], OrtGridSearchCV: []}
    scores = {}
    for _ in range(rounds):
        for search_class, found in seconds.items():
            search = search_class(trainer, grid, cv=3)
            begun = time.perf_counter()
            search.fit(X, y)
            found.append(time.perf_counter() - begun)
            scores[search_class] = search.cv_results_["mean_test_score"]
    difference = np.abs(scores[GridSearchCV] - scores[OrtGridSearchCV]).max()
    return Measured(min(seconds[GridSearchCV]), min(seconds[OrtGridSearchCV]), float(difference))


def sheets(quick: bool) -> list[Sheet]:
    """Return the table of all cases; if ``quick``, of the first two on few rows."""
    rows, figures = [], {}
    for case in CASES[:2] if quick else CASES:
        for name, grid in GRIDS.items():
            if quick:
                found = measure(replace(case, rows=60, features=4), grid, 1, max_iter=2)
            else:
                found = measure(case, grid, 3)
            figures[f"{case.title}, {name}"] = found.ratio
            rows.append(
                [case.title, name, f"{found.alone:.2f}", f"{found.together:.2f}", f"{found.ratio:.2f}"]
            )
    header = ["27 candidates, 3 folds", "grid", "GridSearchCV, s", "OrtGridSearchCV, s", "ratio"]
    text = "Searches whose candidates are trained together in one graph, compared with GridSearchCV."
    return [Sheet(text, header, rows, figures, left=2)]


def main() -> None:
    """Measure and print."""
    for sheet in sheets(False):
        print(sheet.markdown())


if __name__ == "__main__":
    main()
