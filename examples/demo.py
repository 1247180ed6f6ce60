"""Adapt scikit-learn models to data that drifted: the main job of ortlearn.

Each model is fitted by scikit-learn on old samples. After a drift of the data, it is trained
further on 50, 300 and 2,000 new samples, with default parameters. For comparison, scikit-learn
fits a clone of the model on the new samples alone. All scores are measured on other samples
from after the drift.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import onnx
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.datasets import load_digits, make_friedman1
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer

OUTPUT = Path("demo-output")
SIZES = (50, 300, 2000)
#: Number of new samples on which both estimators are trained.
BOTH = 300
NOTES = """\
old: the model before the drift. refit: a scikit-learn fit on the new samples. warm: the old
model, trained further by ortlearn. scikit-learn can only add trees to boosting. Its networks
have no Huber loss, so that outliers affect the refit.
OrtGradientForwardBackwardOptimizer on {size} samples: equal scores, within {difference:.3f}."""
#: X and y of the old, the new and the test samples.
Parts = list[tuple[np.ndarray, np.ndarray]]


@dataclass
class Case:
    """A model, data with a drift, and non-default parameters of the trainer."""

    name: str
    drift: str
    model: Any
    data: Callable[[np.random.Generator], Parts]
    params: dict[str, Any] = field(default_factory=dict)


def images(rng: np.random.Generator) -> Parts:
    """Return old images of digits, new ones (some of them several times) and test images."""
    X, y = load_digits(return_X_y=True)
    old, new, test = np.split(rng.permutation(len(y)), [700, 1200])
    return [(X[numbers], y[numbers]) for numbers in (old, rng.choice(new, SIZES[-1]), test)]


def new_scanner(rng: np.random.Generator) -> Parts:
    """Features drift: the new scanner sends pale images with noise."""
    old, *after = images(rng)
    return [old] + [
        (np.clip(0.5 * X + rng.normal(4, 1.5, X.shape), 0, 16), y) for X, y in after
    ]


def new_bins(rng: np.random.Generator) -> Parts:
    """The concept drifts: digits go into bins by pairs, then 3 and 6 change their bins."""
    old, *after = images(rng)
    bins, new = np.arange(10) // 2, np.arange(10) // 2
    new[3], new[6] = 0, 4
    return [(old[0], bins[old[1]])] + [(X, new[y]) for X, y in after]


def fewer_sales(rng: np.random.Generator) -> Parts:
    """Class shares drift: of two customers one bought, now it is one of ten."""

    def customers(share: float) -> tuple[np.ndarray, np.ndarray]:
        y = (rng.uniform(size=2000) < share).astype(int)
        X = rng.normal(size=(2000, 8)) + 0.6 * y[:, None] * np.array([2, -1, 1, 1, 0, 0, 0, 0])
        X[:, 4] *= np.where(y, 0.5, 1.5)
        return X, y

    return [customers(0.5), customers(0.1), customers(0.1)]


def new_market(rng: np.random.Generator) -> Parts:
    """The concept drifts: houses cost a quarter more, and distance counts for more."""

    def houses(rise: float, per_km: float) -> tuple[np.ndarray, np.ndarray]:
        area, age, km = (
            rng.normal(110, 30, 2000),
            rng.uniform(0, 80, 2000),
            rng.exponential(8, 2000),
        )
        price = rise * (2500 * area - 700 * age + 60_000) - per_km * km
        return np.column_stack([area, age, km]), price + rng.normal(0, 15_000, 2000)

    return [houses(1.0, 3000), houses(1.25, 5000), houses(1.25, 5000)]


def broken_meter(rng: np.random.Generator) -> Parts:
    """Everything is 3 higher than it was, and every tenth new label is a misreading."""
    seeds = rng.integers(1000, size=3)
    old, new, test = (make_friedman1(2000, noise=1.0, random_state=int(seed)) for seed in seeds)
    misread = rng.uniform(size=2000) < 0.1
    return [old, (new[0], new[1] + 3 + 25 * misread), (test[0], test[1] + 3)]


def cases() -> list[Case]:
    """Return the models of the demo."""
    return [
        Case(
            "Scaler + LogisticRegression, digits",
            "two classes redefined",
            make_pipeline(StandardScaler(), LogisticRegression()),
            new_bins,
        ),
        Case(
            "MLPClassifier, digits", "pale images", MLPClassifier(random_state=0), new_scanner
        ),
        Case(
            "GradientBoostingClassifier, sales",
            "a class got rare",
            GradientBoostingClassifier(random_state=0),
            fewer_sales,
        ),
        Case(
            "Ridge, house prices",
            "prices rose",
            make_pipeline(StandardScaler(), Ridge()),
            new_market,
        ),
        Case(
            "HistGradientBoosting, house prices",
            "prices rose",
            HistGradientBoostingRegressor(random_state=0),
            new_market,
        ),
        Case(
            "MLPRegressor, Huber loss",
            "level rose, labels misread",
            make_pipeline(StandardScaler(), MLPRegressor(max_iter=500, random_state=0)),
            broken_meter,
            {"learning_loss": "huber"},
        ),
    ]


def fit_timed(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """Fit and return model and seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.perf_counter()
        model.fit(X, y)
        return model, time.perf_counter() - start


def run_case(case: Case, table: Table) -> float:
    """Fit, retrain after the drift, report; return how far our two estimators differ."""
    old, new, test = case.data(np.random.default_rng(0))
    model, _ = fit_timed(clone(case.model), *old)
    before = model.score(*test)
    slug = case.name.lower().replace(", ", "-").replace(" + ", "-").replace(" ", "-")
    figure, axes = plt.subplots(figsize=(7, 4))
    for size in SIZES:
        given = new[0][:size], new[1][:size]
        refitted, own_seconds = fit_timed(clone(case.model), *given)
        options = {"warm_start": True, "random_state": 0, **case.params}
        trained, seconds = fit_timed(OrtGradientOptimizer(model, **options), *given)
        own, after = refitted.score(*test), trained.score(*test)
        table.add_row(
            case.name if size == SIZES[0] else "",
            case.drift if size == SIZES[0] else "",
            str(size),
            *(f"{score:.3f}" for score in (before, own, after)),
            *(f"{after - other:+.3f}" for other in (before, own)),
            f"{own_seconds:.2f}",
            f"{seconds:.2f}",
            end_section=size == SIZES[-1],
        )
        onnx.save(trained.get_trained_onnx(), OUTPUT / f"{slug}-{size}.onnx")
        epochs = range(1, trained.n_iter_ + 1)
        axes.plot(epochs, trained.train_losses_, label=f"{size} new samples")
        if size == BOTH:
            other, _ = fit_timed(OrtGradientForwardBackwardOptimizer(model, **options), *given)
            difference = abs(other.score(*test) - after)
            onnx.save(other.get_trained_onnx(), OUTPUT / f"{slug}-{size}-forward-backward.onnx")
            axes.plot(
                range(1, other.n_iter_ + 1),
                other.train_losses_,
                "k:",
                label="the same, forward-backward",
            )
    axes.set(
        title=f"Retraining: {case.name}",
        xlabel="epoch or iteration",
        ylabel="mean training loss",
    )
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    figure.savefig(OUTPUT / f"{slug}.png", dpi=120, bbox_inches="tight")
    plt.close(figure)
    return difference


def main() -> None:
    """Run every case and print the table."""
    OUTPUT.mkdir(exist_ok=True)
    table = Table(title="Accuracy or R2 after a drift")
    for name in ("model", "drift"):
        table.add_column(name, no_wrap=True)
    for name in (
        "samples",
        "old",
        "refit",
        "warm",
        "over old",
        "over refit",
        "s refit",
        "s warm",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    X, y = np.eye(4), np.arange(4.0)  # so that loading libraries counts for no model's seconds
    fit_timed(OrtGradientOptimizer(Ridge(), max_iter=1), X, y)
    with threadpool_limits(1):  # the seconds of both are those of one core
        difference = max(run_case(case, table) for case in cases())
    console = Console()
    Console(width=max(console.width, 150)).print(table)
    print(NOTES.format(size=BOTH, difference=difference))
    print(f"Trained ONNX models and loss curves are in {OUTPUT}/.")


if __name__ == "__main__":
    main()
