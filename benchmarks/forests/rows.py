"""Rows of measurements that a file keeps, so that a long measurement can be interrupted and divided."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.forests.data import DATA

__all__ = ["collect", "read_options"]

Row = dict[str, Any]


def read_options(description: str | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--only", default="", help="part of the name of a data set")
    parser.add_argument(
        "--rows",
        type=Path,
        nargs="*",
        default=[],
        help="JSON files of rows, which are not measured again; new rows are added to the first file",
    )
    parser.add_argument("--write", action="store_true", help="write the page")
    return parser.parse_args()


def collect(
    chosen: argparse.Namespace,
    families: Iterable[str],
    measured: Callable[[str, str, int], Row],
    shown: Callable[[Row], str],
) -> list[Row]:
    """Return known rows, and those of the cases that are missing, which are measured, printed and kept."""
    known = [json.loads(path.read_text(encoding="utf-8")) if path.exists() else [] for path in chosen.rows]
    done = {(row["data"], row["family"], row["seed"]) for each in known for row in each}
    kept = known[0] if known else []
    for case in product([name for name in DATA if chosen.only in name], families, range(chosen.splits)):
        if case in done:
            continue
        kept.append(measured(*case))
        print(shown(kept[-1]), flush=True)
        if chosen.rows:
            chosen.rows[0].write_text(json.dumps(kept), encoding="utf-8")
    return kept + [row for each in known[1:] for row in each]
