"""Measure every estimator: ``python -m benchmarks.trust [--splits 20] [--only PATTERN] [--write FILE]``.

With ``--page``, the results of files are written to ``docs/trust.md``. Those of further splits are added to
``docs/trust.csv``; remove it to begin anew.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import time
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path

from benchmarks.trust.datasets import available, is_classification
from benchmarks.trust.estimators import ESTIMATORS, applies, is_tree
from benchmarks.trust.measurement import STARTS, Case, measure
from benchmarks.trust.page import write_page


def cases(datasets: list[str]) -> list[Case]:
    """Return all cases of some data sets; estimators that no scaler changes have raw features only."""
    return [
        Case(dataset, scaling, name)
        for dataset in datasets
        for name in ESTIMATORS
        if applies(name, is_classification(dataset))
        for scaling in (("raw",) if is_tree(name) else ("raw", "scaled"))
    ]


def main() -> None:
    """Read the arguments, measure, and write results case by case."""
    parser = argparse.ArgumentParser(description="Every estimator with default parameters.")
    parser.add_argument("--splits", type=int, default=20, help="splits of each data set")
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--data", default="", help="names of data sets, separated by commas; all by default")
    parser.add_argument(
        "--starts", default=",".join(STARTS), help="starts to measure, separated by commas; all by default"
    )
    parser.add_argument(
        "--only", default="*", help="patterns of names, such as 'wine raw *', separated by commas"
    )
    parser.add_argument(
        "--write",
        type=Path,
        help="file for the results, a line of JSON for each case; cases in it are left out",
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no case after this time")
    parser.add_argument(
        "--page", type=Path, nargs="+", help="add the splits of these files to the page, and stop"
    )
    arguments = parser.parse_args()
    if arguments.page:
        write_page(arguments.page)
        return
    datasets = arguments.data.split(",") if arguments.data else available()
    patterns = arguments.only.split(",")
    chosen = [case for case in cases(datasets) if any(fnmatch(case.name, own) for own in patterns)]
    known = measured(arguments.write)
    end = time.monotonic() + 60 * arguments.minutes
    for seed in range(arguments.first, arguments.splits):  # a measurement that is stopped has whole splits
        for case in chosen:
            if (case.name, seed) in known or time.monotonic() > end:
                continue
            row = measure(case, [seed], starts=arguments.starts.split(","))
            print(summary_line(row), flush=True)
            if arguments.write:
                with arguments.write.open("a") as file:
                    file.write(json.dumps(asdict(row)) + "\n")


def measured(path: Path | None) -> set[tuple[str, int]]:
    """Return cases and splits in a file of results, so that a stopped measurement continues."""
    lines = path.read_text().splitlines() if path and path.exists() else []
    return {(row["name"], seed) for row in map(json.loads, lines) for seed in row["splits"]}


def summary_line(row) -> str:
    """Return a line about a case."""
    if row.skipped:
        return f"{row.name:55} skipped: {row.skipped[:100]}"
    parts = []
    for start, fits in row.fits.items():
        mean = sum(fits.gains) / len(fits.gains) if fits.gains else float("nan")
        if not (fits.seconds or fits.error):
            continue
        text = f"{start} {mean:+.3f} {max(fits.seconds, default=0):.2f}s{'k' if all(fits.kept) else ' '}"
        parts.append(f"ERROR {fits.error[:80]}" if fits.error else text)
    return f"{row.name:55} {sum(row.own) / len(row.own):.3f}  {'  '.join(parts)}"


if __name__ == "__main__":
    main()
