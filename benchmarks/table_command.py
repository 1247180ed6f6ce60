"""The command line of a benchmark that measures many cases and prints tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from fnmatch import fnmatch
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

__all__ = ["run_table"]


def run_table(
    description: str,
    cases: Sequence[Any],
    measure: Callable[[Any, dict[str, Any]], list],
    tables: Sequence[Callable[[list], Table]],
    summary: Callable[[list], dict[str, Any]],
    targets: Mapping[str, float],
) -> None:
    """Read the arguments, measure, print, and write the files that were requested.

    Parameters
    ----------
    description : str
        What ``--help`` says.
    cases : sequence
        Cases, each with a ``name``.
    measure : callable
        ``measure(case, params)`` returns the rows of a case, ``params`` being parameters of our estimator.
    tables : sequence of callable
        Each returns a table of all rows.
    summary : callable
        Returns a dictionary of names and numbers.
    targets : mapping of str to float
        Smallest values that some of these numbers should have.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="part of a name as the table shows it, * for any text")
    parser.add_argument("--write", type=Path, help="file for the results, JSON")
    parser.add_argument("--params", type=json.loads, default={}, help="parameters of our estimator, JSON")
    parser.add_argument("--check", action="store_true", help="fail where a target is missed")
    arguments = parser.parse_args()
    chosen = [case for case in cases if fnmatch(case.name, f"*{arguments.only}*")]
    work = partial(measure, params=arguments.params)
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        found = track(pool.map(work, chosen), total=len(chosen), description="")
        rows = list(chain.from_iterable(found))
    console = Console()
    for table in tables:
        Console(width=max(console.width, 190)).print(table(rows))
    numbers = summary(rows)
    for name, value in numbers.items():
        print(f"{name:50} {value:<8.3g}" + (f" target {targets[name]}" if name in targets else ""))
    if arguments.write:
        arguments.write.write_text(
            json.dumps({"summary": numbers, "rows": [asdict(row) for row in rows]}, indent=1)
        )
    if arguments.check and any(numbers[name] < target for name, target in targets.items()):
        sys.exit("A target is missed.")
