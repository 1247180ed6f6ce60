"""Measure every pair: ``python -m benchmarks.first_hour [--jobs 2] [--only PATTERN] [--write FILE.json]``.

Prints a table, the largest losses against scikit-learn first, and a summary. ``--params`` sets parameters of
our estimator: ``--params '{"learning_rate": "LBFGS"}'``.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from fnmatch import fnmatch
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import track

from benchmarks.first_hour.measurement import measure
from benchmarks.first_hour.pairs import PAIRS
from benchmarks.first_hour.report import summary, table


def main() -> None:
    """Measure, print, and write where that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_hour", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="*", help="pattern of 'data set, raw or scaled, model'")
    parser.add_argument("--write", type=Path, help="file for results as JSON")
    parser.add_argument("--params", type=json.loads, default={}, help="JSON of parameters of our estimator")
    arguments = parser.parse_args()
    pairs = [pair for pair in PAIRS if fnmatch(pair.name, f"*{arguments.only}*")]
    work = partial(measure, params=arguments.params)
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        rows = list(track(pool.map(work, pairs), total=len(pairs), description=""))
    console = Console()
    Console(width=max(console.width, 190)).print(table(rows))
    for name, value in summary(rows).items():
        print(f"{name:50} {value:.3g}")
    if arguments.write:
        found = {"summary": summary(rows), "rows": [asdict(row) for row in rows]}
        arguments.write.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
