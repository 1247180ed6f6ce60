"""The picture of docs/howto/intervals.md: ``python -m benchmarks.intervals.picture``."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

matplotlib.use("Agg")
from matplotlib import pyplot

from ortlearn import OrtIntervalRegressor
from ortlearn.inspection import CoverageDisplay, IntervalDisplay

__all__ = ["draw"]

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "intervals.png"


def waves(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples whose spread grows with their feature."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, size=n)
    return x.reshape(-1, 1), np.sin(x) + 0.12 * x * rng.normal(size=n)


def draw(path: Path) -> None:
    """Draw intervals, their coverage and their width, of two methods for one fitted model."""
    model = GradientBoostingRegressor(n_estimators=50, random_state=0).fit(*waves(1000, 0))
    (X, y), (X_cal, y_cal) = waves(4000, 1), waves(1000, 2)
    figure, axes = pyplot.subplots(1, 4, figsize=(13, 3.2), layout="constrained")
    for number, method in enumerate(("residual", "cqr")):
        levels = np.linspace(0.05, 0.95, 19) if method == "cqr" else None
        trained = OrtIntervalRegressor(model, method=method, levels=levels, random_state=0).fit(X_cal, y_cal)
        IntervalDisplay.from_estimator(trained, X[:300], y[:300], feature=0, ax=axes[number])
        axes[number].set_title(f'method="{method}"')
        axes[number].set_ylim(-2.5, 2.5)
        for kind, ax in zip(("coverage", "width"), axes[2:], strict=True):
            CoverageDisplay.from_estimator(trained, X, y, kind=kind, ax=ax, name=method)
    axes[2].set_title("coverage of new samples")
    axes[3].set_title("mean width")
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", nargs="?", type=Path, default=PICTURE)
    draw(parser.parse_args().picture)
