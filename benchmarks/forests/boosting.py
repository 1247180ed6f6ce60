"""Quantiles and costs of boosting grown on them, on eight data sets: docs/explanation/forests.md.

``python -m benchmarks.forests.boosting --splits 2 --write`` needs LightGBM and statsmodels.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor

from benchmarks.forests.__main__ import COST, LEVELS, cost, scores
from benchmarks.forests.data import DATA, split
from benchmarks.forests.rows import collect, read_options
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


def measured(name: str, family: str, seed: int) -> dict[str, Any]:
    """Return coverage, pinball loss and cost, of ours and of the peer, of one split."""
    (X, y), (X_test, y_test) = split(name, seed)
    model, peer = FAMILIES[family]
    found: dict[str, Any] = {"data": name, "family": family, "seed": seed}
    for tool in ("ours", "peer"):
        predicted = []
        for level in (*LEVELS, COST / (1 + COST)):
            if tool == "ours":
                loss = QuantileLoss(level)
                fitted = OrtGradientOptimizer(model(), learning_loss=loss, random_state=seed)
            else:
                fitted = peer(level).set_params(random_state=seed)
            predicted.append(fitted.fit(X, y).predict(X_test))
        low, high, costly = predicted
        found |= {**scores(tool, y_test, low, high), f"{tool} cost": cost(y_test, costly)}
    return found


def line(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line of the table: means over splits of one data set."""
    mean = {key: np.mean([row[key] for row in rows]) for key in rows[0] if key not in ("data", "family")}
    ratios = [f"{mean[f'ours {key}'] / mean[f'peer {key}']:.2f}" for key in ("loss", "cost")]
    coverages = [f"{mean[f'{tool} coverage']:.2f}" for tool in ("ours", "peer")]
    return [rows[0]["family"], rows[0]["data"], *coverages, *ratios]


def main() -> None:
    """Print the table, or write it to the page."""
    arguments = read_options(__doc__)
    warnings.simplefilter("ignore")
    rows = collect(arguments, FAMILIES, measured, lambda row: str(line([row])))
    cases = [
        [row for row in rows if (row["family"], row["data"]) == case] for case in product(FAMILIES, DATA)
    ]
    head = ["estimator", "data", "coverage", "of the peer", "pinball loss / peer", "cost / peer"]
    text = (
        f"{arguments.splits} splits of each data set. {describe()}\n\n"
        f"{table(head, [line(case) for case in cases if case])}"
    )
    if arguments.write:
        write_block(PAGE, "boosting", f"\n{text}")
    else:
        print(text)


if __name__ == "__main__":
    main()
