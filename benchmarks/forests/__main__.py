"""Quantiles and costs of forests on eight data sets, against quantile forests: docs/explanation/forests.md.

``python -m benchmarks.forests --splits 5 --write`` needs the packages quantile-forest and statsmodels.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
import warnings
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.metrics import mean_pinball_loss

from benchmarks.forests.data import DATA, SEEN, split
from benchmarks.forests.rows import collect, read_options
from benchmarks.machine import describe
from benchmarks.shards.report import write_block
from benchmarks.tables import table
from ortlearn import OrtGradientOptimizer
from ortlearn.losses import QuantileLoss

PAGE = Path(__file__).parents[2] / "docs/explanation/forests.md"
LEVELS = (0.05, 0.95)
COST = 5.0  # of predicting one too little, for one of predicting one too much
FAMILIES = {
    "random forest": RandomForestRegressor(100),
    "extra trees": ExtraTreesRegressor(100),
    "bagging": BaggingRegressor(n_estimators=100),
}


def peer(family: str, seed: int) -> Any:
    """Return the quantile forest of a family; bagging of trees is a forest with all features."""
    from quantile_forest import ExtraTreesQuantileRegressor, RandomForestQuantileRegressor

    kind = ExtraTreesQuantileRegressor if family == "extra trees" else RandomForestQuantileRegressor
    return kind(100, random_state=seed)


def timed(work: Any) -> tuple[Any, float]:
    """Return the result of a function, and its seconds."""
    begin = time.perf_counter()
    return work(), time.perf_counter() - begin


def cost(y: np.ndarray, predicted: np.ndarray) -> float:
    """Return the mean cost, which is a pinball loss up to a factor."""
    return (1 + COST) * mean_pinball_loss(y, predicted, alpha=COST / (1 + COST))


def scores(tool: str, y: np.ndarray, low: np.ndarray, high: np.ndarray) -> dict[str, float]:
    """Return coverage and pinball loss of intervals, with keys that begin with a tool."""
    pairs = zip(LEVELS, (low, high), strict=True)
    return {
        f"{tool} coverage": float(np.mean((low <= y) & (y <= high))),
        f"{tool} loss": sum(mean_pinball_loss(y, own, alpha=level) for level, own in pairs),
    }


def cost_of_factor(model: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> float:
    """Return the cost of a forest times the factor with the lowest out-of-bag cost."""
    model = clone(model).set_params(oob_score=True).fit(X, y)
    factors = np.linspace(0.5, 3, 251)
    best = min(factors, key=lambda factor: cost(y, factor * model.oob_prediction_))
    return cost(y_test, best * model.predict(X_test))


def measured(name: str, family: str, seed: int) -> dict[str, Any]:
    """Return coverage, losses, costs and seconds on one split."""
    (X, y), (X_test, y_test) = split(name, seed)
    model = clone(FAMILIES[family]).set_params(random_state=seed)
    _, own = timed(lambda: clone(model).fit(X, y))
    fitted, seconds = [], []
    for level in LEVELS:
        trainer = OrtGradientOptimizer(model, learning_loss=QuantileLoss(level), random_state=seed)
        trainer, spent = timed(lambda trainer=trainer: trainer.fit(X, y))
        fitted.append(trainer.predict(X_test))
        seconds.append(spent)
    quantiles = peer(family, seed).fit(X, y).predict(X_test, quantiles=list(LEVELS)).T
    found: dict[str, Any] = {"data": name, "family": family, "seed": seed, "own": own, "fit": max(seconds)}
    for tool, (low, high) in {"ours": fitted, "peer": quantiles}.items():
        found |= scores(tool, y_test, low, high)
    if family == "random forest":
        trainer = OrtGradientOptimizer(
            model, learning_loss=QuantileLoss(COST / (1 + COST)), random_state=seed
        ).fit(X, y)
        found["cost"] = cost(y_test, trainer.predict(X_test))
        found["cost of factor"] = cost_of_factor(model, X, y, X_test, y_test)
    return found


def page(rows: list[dict[str, Any]], n_splits: int) -> str:
    """Return the table; data sets with another number of splits have it in parentheses."""
    header = ["data", "family", "coverage", "peer", "pinball loss / peer", "cost / factor", "fit / own"]
    lines, ratios = [], []
    for name in DATA:
        for family in FAMILIES:
            own = [row for row in rows if (row["data"], row["family"]) == (name, family)]
            if not own:
                continue
            mean = {
                key: np.mean([row[key] for row in own]) for key in own[0] if key not in ("data", "family")
            }
            ratios.append(mean["ours loss"] / mean["peer loss"])
            costs = f"{mean['cost'] / mean['cost of factor']:.3f}" if "cost" in mean else ""
            label = name if name in SEEN else f"{name} *"
            label += "" if len(own) == n_splits else f" ({len(own)})"
            coverages = [f"{mean[f'{tool} coverage']:.3f}" for tool in ("ours", "peer")]
            lines.append(
                [label, family, *coverages, f"{ratios[-1]:.3f}", costs, f"{mean['fit'] / mean['own']:.1f}"]
            )
    text = fill(
        f"Means over {n_splits} splits, or over the number in parentheses; up to 1,000 training samples, 100 "
        f"trees with default parameters, one thread, {describe()}. * Data sets that were not used while the "
        f"rule was chosen. Worst loss: {max(ratios):.3f} of the peer.",
        120,
    )
    return f"{text}\n\n{table(header, lines, left=2)}"


def main() -> None:
    """Measure, print, and write the page."""
    arguments = read_options(__doc__)
    warnings.simplefilter("ignore")
    rows = collect(arguments, FAMILIES, measured, lambda row: page([row], 1).splitlines()[-1])
    text = page(rows, arguments.splits)
    print(text)
    if arguments.write:
        write_block(PAGE, "forest intervals", f"\n{text}")


if __name__ == "__main__":
    main()
