"""Coverage of sets, groups and streams: ``python -m benchmarks.intervals.promises [--fits N] [--write]``.

It writes the second part of docs/explanation/intervals.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.special import softmax
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.intervals.__main__ import COVERAGE, PAGE, band
from benchmarks.intervals.data import draws, split
from ortlearn import OrtIntervalRegressor, OrtSetClassifier

DRAWS = 200
CLASSIFIER = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
#: Data sets of regression with groups.
GROUPED = ("heteroscedastic", "skewed", "discrete", "heavy tails", "diabetes")
#: Number of samples of a stream, and what is added to their labels.
LENGTH = 500
STREAMS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "exchangeable": lambda rng: np.zeros(LENGTH),
    "drift": lambda rng: np.linspace(0, 20, LENGTH),
    "jump": lambda rng: np.where(np.arange(LENGTH) < LENGTH // 2, 0.0, 10.0),
    "outliers": lambda rng: np.where(rng.uniform(size=LENGTH) < 0.3, 1e3, 0.0),
}
#: Correct samples, samples, and calibration samples of the draws of a fit.
Counts = list[tuple[int, int, int]]
Count = Callable[[str, int], Counts]


def classes_of(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples and classes, in a random order."""
    rng = np.random.default_rng(seed)
    if name == "noisy":
        X = rng.normal(size=(1000, 5))
        shares = softmax(X @ rng.normal(size=(5, 4)), axis=1)
        y = (rng.uniform(size=(1000, 1)) > shares.cumsum(axis=1)).sum(axis=1)
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = rng.permutation(len(y))
    return X[order], y[order]


def sets(method: str, name: str, seed: int) -> Counts:
    """Count the sets that contain the class, for the draws of a fit."""
    X, y = classes_of(name, seed)
    n, n_cal = len(y) // 2, len(y) // 4
    options = {"method": method, "coverage": COVERAGE, "calibration": n_cal, "random_state": seed}
    model = OrtSetClassifier(CLASSIFIER, **options).fit(X[:n], y[:n])
    found = []
    for cal, test in draws(len(y) - n, n_cal, DRAWS, seed):
        inside = model.recalibrate(X[n:][cal], y[n:][cal]).predict_set(X[n:][test])[1][:, :, 0]
        right = inside[np.arange(len(test)), np.searchsorted(model.classes_, y[n:][test])]
        found.append((int(right.sum()), len(test), n_cal))
    return found


def by_group(method: str, name: str, seed: int) -> Counts:
    """Count the labels inside of their intervals in each of two groups, for the draws of a fit."""
    (X, y), (X_pool, y_pool), n_cal = split(name, seed)
    groups, pool = (np.where(part[:, 0] > np.median(X[:, 0]), "high", "low") for part in (X, X_pool))
    options = {"method": method, "coverage": COVERAGE, "group_min_size": 9, "random_state": seed}
    model = OrtIntervalRegressor(make_pipeline(StandardScaler(), Ridge()), **options)
    model.fit(X, y, X_cal=X_pool[:n_cal], y_cal=y_pool[:n_cal], groups_cal=pool[:n_cal])
    found = []
    for cal, test in draws(len(y_pool), n_cal, DRAWS, seed):
        model.recalibrate(X_pool[cal], y_pool[cal], groups=pool[cal])
        ends = model.predict_interval(X_pool[test], groups=pool[test])[1][:, :, 0]
        inside = (ends[:, 0] <= y_pool[test]) & (y_pool[test] <= ends[:, 1])
        for group in np.unique(groups):
            own = pool[test] == group
            found.append((int(inside[own].sum()), int(own.sum()), int((pool[cal] == group).sum())))
    return found


def misses(kind: str, seed: int, step: float = 0.05) -> tuple[float, float]:
    """Return the share of misses of a stream, and the bound of its distance from the share asked for."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200 + LENGTH, 3))
    y = X[:, 0] + rng.normal(size=len(X))
    y[200:] += STREAMS[kind](rng)
    options = {"method": "residual", "step": step, "window": 200, "random_state": seed}
    model = OrtIntervalRegressor(Ridge(), coverage=COVERAGE, **options).fit(X[:200], y[:200])
    count = 0
    for place in range(200, len(X)):
        part = slice(place, place + 1)
        low, high = model.predict_interval(X[part])[1][0, :, 0]
        count += not low <= y[place] <= high
        model.partial_fit(X[part], y[part])
    return count / LENGTH, (COVERAGE + step) / (LENGTH * step)


def line(what: str, names: tuple[str, ...], fits: int, count: Count, above: bool) -> str:
    """Return a line of the table; coverage ``above`` the band keeps the promise."""
    shares, exact, fine, of_name = [], [], [], {}
    for name in names:
        found = [part for seed in range(fits) for part in count(name, seed)]
        of_name[name] = np.mean([right / n for right, n, _ in found])
        for right, n, n_cal in found:
            low, high, share = band(n, n_cal)
            fine.append(low <= right and (above or right <= high))
            shares.append(right / n)
            exact.append(share)
    lowest = min(of_name, key=lambda name: of_name[name])
    return (
        f"| {what} | {len(names)} x {fits} | {DRAWS} | {np.mean(shares):.4f} | {np.mean(exact):.4f} "
        f"| {np.mean(fine):.1%} | {of_name[lowest]:.3f} ({lowest}) |"
    )


def table(fits: int) -> Iterator[str]:
    """Yield the lines of both tables."""
    yield "| contender | fits | draws | coverage | exact | inside of the band | lowest set |"
    yield "|---|---|---|---|---|---|---|"
    classes = ("digits", "iris", "wine", "breast_cancer", "noisy")
    for method, above in (("lac", False), ("aps", True)):
        count = partial(sets, method)
        yield line(f"sets, `{method}`" + " (or above)" * above, classes, fits, count, above)
    for method in ("residual", "cqr"):
        yield line(f"groups, `{method}`", GROUPED, fits, partial(by_group, method), False)
    yield ""
    yield "| stream | fits | samples | share of misses | largest distance from 10 % | bound |"
    yield "|---|---|---|---|---|---|"
    for kind in STREAMS:
        found = [misses(kind, seed) for seed in range(fits)]
        shares, bound = [share for share, _ in found], found[0][1]
        distance = max(abs(share - (1 - COVERAGE)) for share in shares)
        yield f"| {kind} | {fits} | {LENGTH} | {np.mean(shares):.3f} | {distance:.3f} | {bound:.3f} |"


def main() -> None:
    """Measure, and print or write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intervals.promises", description=__doc__)
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = []
    for text in table(options.fits):
        lines.append(text)
        print(text, flush=True)
    if options.write:
        before, begin, rest = PAGE.read_text().partition("<!-- promises: begin -->\n")
        after = "<!-- promises: end -->" + rest.partition("<!-- promises: end -->")[2]
        PAGE.write_text(f"{before}{begin}\n" + "\n".join(lines) + f"\n\n{after}")


if __name__ == "__main__":
    main()
