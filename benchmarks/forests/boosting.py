"""Quantiles and costs of boosting grown on them, on eight data sets: docs/explanation/forests.md.

``python -m benchmarks.forests.boosting --splits 2 --write`` needs LightGBM and statsmodels.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss

from benchmarks.forests.__main__ import COST, LEVELS, cost
from benchmarks.forests.data import DATA, split
from benchmarks.machine import describe
from benchmarks.shards.report import write_block
from benchmarks.tables import table
from ortlearn import OrtGradientOptimizer
from ortlearn.losses import QuantileLoss

PAGE = Path(__file__).parents[2] / "docs/explanation/forests.md"
#: Estimators, and how their peers fit a quantile.
FAMILIES: dict[str, tuple[Any, Any]] = {
    "GradientBoosting": (
        GradientBoostingRegressor,
        lambda level: GradientBoostingRegressor(loss="quantile", alpha=level),
    ),
    "LightGBM": (
        lambda: LGBMRegressor(verbose=-1, n_jobs=1),
        lambda level: LGBMRegressor(objective="quantile", alpha=level, verbose=-1, n_jobs=1),
    ),
    "HistGradientBoosting": (
        HistGradientBoostingRegressor,
        lambda level: HistGradientBoostingRegressor(loss="quantile", quantile=level),
    ),
}


def measured(family: str, name: str, seed: int) -> np.ndarray:
    """Return coverage, pinball loss and cost, of ours and of the peer, of one split."""
    (X, y), (X_test, y_test) = split(name, seed)
    model, peer = FAMILIES[family]
    found = []
    for ours in (True, False):
        predicted = []
        for level in (*LEVELS, COST / (1 + COST)):
            if ours:
                loss = QuantileLoss(level)
                fitted = OrtGradientOptimizer(model(), learning_loss=loss, random_state=seed)
            else:
                fitted = peer(level).set_params(random_state=seed)
            predicted.append(fitted.fit(X, y).predict(X_test))
        low, high, costly = predicted
        found.append(np.mean((low <= y_test) & (y_test <= high)))
        pairs = zip(LEVELS, (low, high), strict=True)
        found.append(sum(mean_pinball_loss(y_test, own, alpha=level) for level, own in pairs))
        found.append(cost(y_test, costly))
    return np.array(found)


def main() -> None:
    """Print the table, or write it to the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for family in FAMILIES:
        for name in DATA:
            results = [measured(family, name, seed) for seed in range(options.splits)]
            own, loss, costs, other, peer_loss, peer_costs = np.mean(results, axis=0)
            ratios = f"{loss / peer_loss:.2f}", f"{costs / peer_costs:.2f}"
            rows.append([family, name, f"{own:.2f}", f"{other:.2f}", *ratios])
            print(rows[-1], flush=True)
    head = ["estimator", "data", "coverage", "of the peer", "pinball loss / peer", "cost / peer"]
    text = f"{options.splits} splits of each data set. {describe()}\n\n{table(head, rows)}"
    if options.write:
        write_block(PAGE, "boosting", f"\n{text}")
    else:
        print(text)


if __name__ == "__main__":
    main()
