"""Measure intervals, and write the table of docs/explanation/intervals.md.

``python -m benchmarks.intervals [--families linear network trees] [--fits N] [--only NAME ...] [--write]``
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import betabinom

from benchmarks.intervals.contenders import COVERAGE, OURS, PEERS, fitted
from benchmarks.intervals.data import NAMES, draws, split
from ortlearn.intervals import interval_score
from ortlearn.intervals.conformal import rank

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "intervals.md"
RESULTS = ROOT / "build" / "intervals.json"
#: Numbers of draws for coverages, and for comparisons with other packages.
DRAWS, COMPARED = 200, 5
BAND = (0.005, 0.995)


def measure(family: str, name: str, seed: int) -> list[dict]:
    """Return a record of each contender: coverages of the draws, mean width and interval score."""
    (X, y), (X_pool, y_pool), n_cal = split(name, seed)
    found = []
    for group in (OURS, PEERS):
        for method, fit in group[family].items():
            start = time.perf_counter()
            intervals = fitted(fit, X, y, X_pool, y_pool, n_cal, seed)
            seconds = time.perf_counter() - start
            count = DRAWS if group is OURS else COMPARED
            covered, widths, scores = [], [], []
            for number, (cal, test) in enumerate(draws(len(y_pool), n_cal, count, seed)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ends = intervals(cal, test)
                covered.append(int(np.sum((ends[:, 0] <= y_pool[test]) & (y_pool[test] <= ends[:, 1]))))
                if number < COMPARED:
                    widths.append(float(np.mean(ends[:, 1] - ends[:, 0])))
                    scores.append(interval_score(y_pool[test], ends, COVERAGE))
            found.append(
                {
                    **{"family": family, "data": name, "seed": seed, "method": method, "own": group is OURS},
                    **{"n_cal": n_cal, "n_test": len(y_pool) - n_cal, "seconds": seconds},
                    **{"covered": covered, "width": np.mean(widths), "score": np.mean(scores)},
                }
            )
    return found


def main() -> None:
    """Measure, and print or write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intervals", description=__doc__)
    parser.add_argument(
        "--families", nargs="*", default=list(OURS), help=", ".join(OURS) + "; none to write only"
    )
    parser.add_argument("--only", nargs="*", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="seed of the first fit")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--append", action="store_true", help="measure only what the results lack")
    options = parser.parse_args()
    records = json.loads(RESULTS.read_text()) if options.append and RESULTS.exists() else []
    known = {(item["family"], item["data"], item["seed"]) for item in records}
    for family in options.families:
        for name in options.only:
            for seed in range(options.first, options.first + options.fits):
                if (family, name, seed) not in known:
                    records += measure(family, name, seed)
            print(family, name, flush=True)
            if options.write:
                RESULTS.parent.mkdir(exist_ok=True)
                RESULTS.write_text(json.dumps(records))
    text = tables(records)
    print(text)
    if options.write:
        before, _, rest = PAGE.read_text().partition("<!-- intervals: begin -->")
        after = rest.partition("<!-- intervals: end -->")[2]
        PAGE.write_text(f"{before}<!-- intervals: begin -->\n\n{text}\n\n<!-- intervals: end -->{after}")


def tables(records: list[dict]) -> str:
    """Return the tables of coverages and of scores."""
    lines = ["| estimator | contender | fits | draws | coverage | exact | inside of the band | lowest set |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for family in dict.fromkeys(item["family"] for item in records):
        for method in dict.fromkeys(i["method"] for i in records if i["family"] == family and i["own"]):
            own = [i for i in records if i["family"] == family and i["method"] == method and i["own"]]
            lines.append(_coverage_line(family, method, own))
    lines += ["", "| estimator | contender | width | interval score | better on | best of each set |"]
    lines.append("|---|---|---|---|---|---|")
    for family in dict.fromkeys(item["family"] for item in records):
        lines += _score_lines([item for item in records if item["family"] == family])
    return "\n".join(lines)


@cache
def band(n_test: int, n_cal: int) -> tuple[float, float, float]:
    """Return the band of the number of labels inside, and their mean share."""
    k = rank(n_cal, COVERAGE)
    low, high = betabinom.ppf(BAND, n_test, k, n_cal + 1 - k)
    return float(low), float(high), k / (n_cal + 1)


def _coverage_line(family: str, method: str, records: list[dict]) -> str:
    shares, exact, inside = [], [], []
    for item in records:
        low, high, share = band(item["n_test"], item["n_cal"])
        shares.append(np.mean(item["covered"]) / item["n_test"])
        exact.append(share)
        inside.append(np.mean([low <= count <= high for count in item["covered"]]))
    by_data = {}
    for item, share in zip(records, shares, strict=True):
        by_data.setdefault(item["data"], []).append(share)
    lowest = min(by_data, key=lambda name: np.mean(by_data[name]))
    fits, count = _fits(records), len(records[0]["covered"])
    return (
        f"| {family} | `{method}` | {fits} | {count} | {np.mean(shares):.4f} | {np.mean(exact):.4f} "
        f"| {np.mean(inside):.1%} | {np.mean(by_data[lowest]):.3f} ({lowest}) |"
    )


def _fits(records: list[dict]) -> str:
    """Return the number of data sets, and that of the fits of each."""
    counts = Counter(item["data"] for item in records)
    return " + ".join(f"{sets} x {fits}" for fits, sets in sorted(Counter(counts.values()).items()))


def _score_lines(records: list[dict]) -> list[str]:
    """Return lines of a family: geometric means relative to the best peer, and to that of each data set."""
    names = list(dict.fromkeys(item["data"] for item in records))
    methods = list(dict.fromkeys((item["own"], item["method"]) for item in records))

    def mean(kind: tuple, name: str, what: str) -> float:
        found = [i[what] for i in records if (i["own"], i["method"]) == kind and i["data"] == name]
        return float(np.mean(found))

    peers = [kind for kind in methods if not kind[0]]
    average = {k: np.exp(np.mean([np.log(mean(k, n, "score")) for n in names])) for k in peers}
    best = min(average, key=lambda kind: average[kind])
    least = {name: min(mean(kind, name, "score") for kind in peers) for name in names}
    lines = []
    for kind in methods:
        score = [mean(kind, name, "score") / mean(best, name, "score") for name in names]
        width = [mean(kind, name, "width") / mean(best, name, "width") for name in names]
        oracle = [mean(kind, name, "score") / least[name] for name in names]
        better = sum(value <= 1.0 for value in score)
        label = f"`{kind[1]}`" if kind[0] else kind[1]
        lines.append(
            f"| {records[0]['family']} | {label} | {np.exp(np.mean(np.log(width))):.3f} "
            f"| {np.exp(np.mean(np.log(score))):.3f} | {better} of {len(names)} "
            f"| {np.exp(np.mean(np.log(oracle))):.3f} |"
        )
    return lines


if __name__ == "__main__":
    main()
