"""Microseconds per batch of a small MLP, side by side with scikit-learn in one run.

MLPRegressor (50, 10) on 1000 x 100 rows, batches of 15, momentum. Rounds alternate between the
contenders so that a busy machine slows all of them; medians and the spread (smallest to largest)
are printed, and ratios to scikit-learn. One thread each.
"""

from __future__ import annotations

import argparse
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import time
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateSGDNesterov

ROWS, FEATURES, BATCH, RATE = 1000, 100, 15, 1e-4


def make_data() -> tuple[np.ndarray, np.ndarray]:
    """Return standardised features and labels, float32."""
    X, y = make_regression(ROWS, FEATURES, noise=1.0, random_state=0)
    X = StandardScaler().fit_transform(X)
    return X.astype(np.float32), ((y - y.mean()) / y.std()).astype(np.float32)


def sklearn_model(epochs: int) -> MLPRegressor:
    """Return scikit-learn's contender."""
    return MLPRegressor(
        hidden_layer_sizes=(50, 10),
        solver="sgd",
        learning_rate_init=RATE,
        momentum=0.9,
        nesterovs_momentum=False,
        batch_size=BATCH,
        alpha=0.0,
        max_iter=epochs,
        n_iter_no_change=epochs + 1,
        tol=0.0,
        random_state=0,
    )


def our_model(kind, model: MLPRegressor, epochs: int):
    """Return one of our contenders, started from the weights of a fitted model."""
    rate = LearningRateSGDNesterov(RATE, learning_rate="constant", momentum=0.9, nesterov=False)
    return kind(model, learning_rate=rate, batch_size=BATCH, max_iter=epochs, warm_start=True, random_state=0)


def fit_seconds(estimator, X: np.ndarray, y: np.ndarray) -> float:
    """Return the seconds of a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.perf_counter()
        estimator.fit(X, y)
        return time.perf_counter() - start


def measure(epochs: int, rounds: int) -> dict[str, list[float]]:
    """Return microseconds per batch of every round; the cost of starting up is taken off."""
    X, y = make_data()
    base = sklearn_model(1)
    fit_seconds(base, X, y)
    makers = {
        "scikit-learn MLPRegressor": sklearn_model,
        "OrtGradientOptimizer": lambda n: our_model(OrtGradientOptimizer, base, n),
        "OrtGradientForwardBackwardOptimizer": lambda n: our_model(
            OrtGradientForwardBackwardOptimizer, base, n
        ),
    }
    batches = -(-ROWS // BATCH)
    times: dict[str, list[float]] = {name: [] for name in makers}
    for make in makers.values():
        fit_seconds(make(2), X, y)
    for _ in range(rounds):
        for name, make in makers.items():
            short, long = fit_seconds(make(1), X, y), fit_seconds(make(1 + epochs), X, y)
            times[name].append((long - short) / (epochs * batches) * 1e6)
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    times = measure(arguments.epochs, arguments.rounds)
    reference = float(np.median(times["scikit-learn MLPRegressor"]))
    table = Table(title="MLP 100-50-10-1, batches of 15, momentum, one thread")
    table.add_column("estimator", no_wrap=True)
    for name in ("microseconds per batch", "smallest to largest", "ratio to scikit-learn"):
        table.add_column(name, justify="right")
    for name, values in times.items():
        median = float(np.median(values))
        spread = f"{min(values):.1f} to {max(values):.1f}"
        table.add_row(name, f"{median:.1f}", spread, f"{median / reference:.2f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
