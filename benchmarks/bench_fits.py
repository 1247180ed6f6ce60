"""Whole fits with default parameters: ``python -m benchmarks.bench_fits [--only Ridge] [--sizes 200,1000]``.

Forty estimators of scikit-learn are fitted by themselves, from fresh weights and from their own ones, on
samples of 20 features. Times are processor times of the process, and libraries have one thread. A first fit
of each kind, which imports and compiles, is not counted.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.discovery import all_estimators

from benchmarks.machine import describe, versions
from ortlearn import OrtGradientOptimizer

__all__ = ["ESTIMATORS", "Fit", "data", "main", "measure", "summary", "table"]

#: Estimators of the table.
ESTIMATORS = (
    *("ARDRegression", "AdaBoostClassifier", "AdaBoostRegressor", "BaggingClassifier", "BaggingRegressor"),
    *("BayesianRidge", "DecisionTreeClassifier", "DecisionTreeRegressor", "ElasticNet", "ElasticNetCV"),
    *("ExtraTreesClassifier", "ExtraTreesRegressor", "GammaRegressor", "GaussianNB"),
    *("GaussianProcessClassifier", "GaussianProcessRegressor", "GradientBoostingClassifier"),
    *("GradientBoostingRegressor", "HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
    *("HuberRegressor", "KNeighborsRegressor", "KernelRidge", "Lasso", "LinearDiscriminantAnalysis"),
    *("LinearRegression", "LinearSVC", "LinearSVR", "LogisticRegression", "MLPClassifier", "MLPRegressor"),
    *("PoissonRegressor", "QuantileRegressor", "RandomForestClassifier", "RandomForestRegressor", "Ridge"),
    *("RidgeClassifier", "SGDClassifier", "SVC", "SVR"),
)
#: Numbers of samples.
SIZES = (200, 1_000, 10_000, 50_000)
#: A fit may take this many fits of the estimator, or seconds: from fresh weights, and from its own ones.
LIMITS = {"fresh": (2.0, 0.15), "warm": (5.0, 1.0)}
#: Seconds of a fit after which larger numbers of samples are left out.
LONGEST = 15.0


@dataclass(frozen=True)
class Fit:
    """Times of the fits of one estimator.

    Attributes
    ----------
    model : str
        Name of the class.
    n_samples : int
        Number of samples.
    own, fresh, warm : float
        Seconds of processor time of the estimator's own fit, and from fresh and own weights.
    """

    model: str
    n_samples: int
    own: float
    fresh: float
    warm: float

    def seconds(self, start: str) -> float:
        """Return the seconds of a start by its name."""
        return self.fresh if start == "fresh" else self.warm

    def is_slow(self, start: str) -> bool:
        """Return whether a fit takes longer than its limit."""
        times, seconds = LIMITS[start]
        return self.seconds(start) > max(times * self.own, seconds)


def data(n_samples: int, by_class: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of 20 features, and labels above zero or of three classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 20))
    score = X[:, :5].sum(axis=1) + X[:, 5] * X[:, 6] + 0.5 * rng.normal(size=n_samples)
    return X, np.digitize(score, [-1.5, 1.5]) if by_class else np.exp(score / 4)


def measure(name: str, sizes: tuple[int, ...] = SIZES, longest: float = LONGEST) -> Iterator[Fit]:
    """Yield the times of an estimator for each number of samples, up to the first fit that takes too long."""
    found = dict(all_estimators())[name]()
    if "random_state" in found.get_params():
        found.set_params(random_state=0)
    by_class = is_classifier(found)
    _times(found, *data(min(sizes), by_class))  # imports and compiles
    for n_samples in sizes:
        fit = Fit(name, n_samples, *_times(found, *data(n_samples, by_class)))
        yield fit
        if max(fit.own, fit.fresh, fit.warm) > longest:
            return


def _times(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Return the seconds of processor time of the fits; the fitted model is the start of the warm one."""
    own = clone(model)
    fresh = OrtGradientOptimizer(clone(model), random_state=0)
    warm = OrtGradientOptimizer(own, warm_start=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(_seconds(each, X, y) for each in (own, fresh, warm))


def _seconds(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    since = time.process_time()
    model.fit(X, y)
    return time.process_time() - since


def table(fits: list[Fit]) -> str:
    """Return the table of all fits; those above their limits are bold."""
    lines = [
        "| estimator | samples | own fit | fresh | times | warm | times |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for fit in fits:
        cells = [fit.model, f"{fit.n_samples:,}", f"{fit.own:.3f}"]
        for start in LIMITS:
            mark = "**" if fit.is_slow(start) else ""
            cells += [f"{mark}{fit.seconds(start):.3f}{mark}", f"{fit.seconds(start) / fit.own:.3g}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(fits: list[Fit]) -> str:
    """Return a sentence on each start."""
    parts = []
    for start, (times, seconds) in LIMITS.items():
        slow = sum(fit.is_slow(start) for fit in fits)
        median = float(np.median([fit.seconds(start) for fit in fits]))
        parts.append(
            f"{start}: median {median:.3f} s; {slow} of {len(fits)} take longer than {times:g} own fits and "
            f"{seconds:g} s."
        )
    return "\n".join(parts)


def main() -> None:
    """Read the arguments, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="names of estimators, separated by commas")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of samples")
    parser.add_argument("--longest", type=float, default=LONGEST, help="seconds that end an estimator")
    parser.add_argument("--write", type=Path, help="file for the results, a line of JSON for each fit")
    arguments = parser.parse_args()
    fits = []
    for name in arguments.only.split(",") if arguments.only else ESTIMATORS:
        for fit in measure(name, tuple(map(int, arguments.sizes.split(","))), arguments.longest):
            fits.append(fit)
            print(table([fit]).splitlines()[-1], flush=True)
            if arguments.write:
                with arguments.write.open("a") as file:
                    file.write(json.dumps(asdict(fit)) + "\n")
    installed = ", ".join(f"{name} {version}" for name, version in versions().items())
    print(f"\n{describe()}; {installed}\n\n{table(fits)}\n\n{summary(fits)}")


if __name__ == "__main__":
    main()
